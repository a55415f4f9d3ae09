"""High availability for PySpark: what a driver publishes and protects, and what Python workers look up.

``job_master``, ``report``, ``checkpoint``, ``call`` and ``connect`` are for code in Python workers, and the others for
the driver. Imports are lazy, so a worker imports neither the driver's modules nor PySpark.

One thing is not: in a program that ``ha run --engine`` has started, this import prepares PySpark for the JVM that is
there. So it stands before the session is built.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ha.jobmaster.master import JobMaster, NoEndpoint
    from ha.outputs.partition_commit import CommittedPartition, PartitionCommit
    from ha.spark.attaching import adopt_or_start
    from ha.spark.checkpoint_copy.adopting import Copied, adopt
    from ha.spark.checkpoint_copy.exporting import export
    from ha.spark.checkpoint_publisher import CheckpointPublisher
    from ha.spark.dead_letters import DeadLetters
    from ha.spark.lead_session import lead
    from ha.spark.locations import checkpoint_location, executor_settings
    from ha.spark.output import Output
    from ha.spark.query_events import publish_checkpoints
    from ha.spark.region_groups import file_regions, kafka_regions
    from ha.spark.regional_output import RegionalOutput
    from ha.spark.rehearsal import Rehearsal, warm_up
    from ha.spark.session import explain
    from ha.spark.sink.data_source import register_format
    from ha.spark.source_names import named_source
    from ha.spark.supervision.job import Job
    from ha.spark.worker.worker import call, checkpoint, connect, job_master, report

_PLACES = {
    "CheckpointPublisher": "ha.spark.checkpoint_publisher",
    "CommittedPartition": "ha.outputs.partition_commit",
    "Copied": "ha.spark.checkpoint_copy.adopting",
    "DeadLetters": "ha.spark.dead_letters",
    "Job": "ha.spark.supervision.job",
    "JobMaster": "ha.jobmaster.master",
    "NoEndpoint": "ha.jobmaster.master",
    "Output": "ha.spark.output",
    "PartitionCommit": "ha.outputs.partition_commit",
    "RegionalOutput": "ha.spark.regional_output",
    "Rehearsal": "ha.spark.rehearsal",
    "adopt": "ha.spark.checkpoint_copy.adopting",
    "adopt_or_start": "ha.spark.attaching",
    "call": "ha.spark.worker.worker",
    "checkpoint": "ha.spark.worker.worker",
    "checkpoint_location": "ha.spark.locations",
    "connect": "ha.spark.worker.worker",
    "executor_settings": "ha.spark.locations",
    "explain": "ha.spark.session",
    "export": "ha.spark.checkpoint_copy.exporting",
    "file_regions": "ha.spark.region_groups",
    "job_master": "ha.spark.worker.worker",
    "kafka_regions": "ha.spark.region_groups",
    "lead": "ha.spark.lead_session",
    "named_source": "ha.spark.source_names",
    "publish_checkpoints": "ha.spark.query_events",
    "register_format": "ha.spark.sink.data_source",
    "report": "ha.spark.worker.worker",
    "warm_up": "ha.spark.rehearsal",
}

__all__ = [
    "CheckpointPublisher",
    "CommittedPartition",
    "Copied",
    "DeadLetters",
    "Job",
    "JobMaster",
    "NoEndpoint",
    "Output",
    "PartitionCommit",
    "RegionalOutput",
    "Rehearsal",
    "adopt",
    "adopt_or_start",
    "call",
    "checkpoint",
    "checkpoint_location",
    "connect",
    "executor_settings",
    "explain",
    "export",
    "file_regions",
    "job_master",
    "kafka_regions",
    "lead",
    "named_source",
    "publish_checkpoints",
    "register_format",
    "report",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ha.spark' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # laziness is the point

    try:
        module = import_module(_PLACES[name])
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise ModuleNotFoundError(
            f"ha.spark.{name} needs PySpark: pip install 'hybrid-ha[spark]'.", name=error.name
        ) from error
    # Kept, because workers use these names for every row.
    return globals().setdefault(name, getattr(module, name))


if os.environ.get("HA_ENGINE"):
    from ha.spark.attaching import prepare

    prepare()
