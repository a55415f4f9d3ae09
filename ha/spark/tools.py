"""The tools of operators and their programs: checkpoints into a job and out of it, and an error explained."""

from ha.spark.checkpoint_tools.exporting import export_checkpoint
from ha.spark.checkpoint_tools.importing import CopiedCheckpoint, import_checkpoint
from ha.spark.session.spark_session import explain

__all__ = ["CopiedCheckpoint", "explain", "export_checkpoint", "import_checkpoint"]
