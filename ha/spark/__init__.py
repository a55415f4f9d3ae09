"""PySpark's side: what the driver publishes and protects, and what Python workers ask.

``job_master`` and ``checkpoint`` are for code that runs in Python workers; the others are for the driver. Imports are
lazy, so that a worker never pays for the driver's, nor for PySpark's own.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ha.spark.bulk.adopting import Copied, adopt
    from ha.spark.bulk.exporting import export
    from ha.spark.driver import CheckpointPublisher, publish_checkpoints
    from ha.spark.location import checkpoint_location, executor_settings
    from ha.spark.output import Output
    from ha.spark.warm import Rehearsal, warm_up
    from ha.spark.worker import JobMaster, NoEndpoint, checkpoint, job_master

_PLACES = {
    "CheckpointPublisher": "ha.spark.driver",
    "Copied": "ha.spark.bulk.adopting",
    "JobMaster": "ha.spark.worker",
    "NoEndpoint": "ha.spark.worker",
    "Output": "ha.spark.output",
    "Rehearsal": "ha.spark.warm",
    "adopt": "ha.spark.bulk.adopting",
    "checkpoint": "ha.spark.worker",
    "checkpoint_location": "ha.spark.location",
    "executor_settings": "ha.spark.location",
    "export": "ha.spark.bulk.exporting",
    "job_master": "ha.spark.worker",
    "publish_checkpoints": "ha.spark.driver",
    "warm_up": "ha.spark.warm",
}

__all__ = [
    "CheckpointPublisher",
    "Copied",
    "JobMaster",
    "NoEndpoint",
    "Output",
    "Rehearsal",
    "adopt",
    "checkpoint",
    "checkpoint_location",
    "executor_settings",
    "export",
    "job_master",
    "publish_checkpoints",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ha.spark' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # laziness is the point

    # Kept, because workers call these for every row.
    return globals().setdefault(name, getattr(import_module(_PLACES[name]), name))
