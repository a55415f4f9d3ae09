"""PySpark's side: what the driver publishes and protects, and what Python workers ask.

``job_master``, ``report``, ``checkpoint``, ``call`` and ``connect`` are for code that runs in Python workers; the
others are for the driver. Imports are lazy, so that a worker never pays for the driver's, nor for PySpark's own.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ha.jobmaster.master import JobMaster, NoEndpoint
    from ha.spark.bulk.adopting import Copied, adopt
    from ha.spark.bulk.exporting import export
    from ha.spark.calling import call, connect
    from ha.spark.driver import CheckpointPublisher, publish_checkpoints
    from ha.spark.explaining import explain
    from ha.spark.leading import lead
    from ha.spark.location import checkpoint_location, executor_settings
    from ha.spark.output import Output
    from ha.spark.warm import Rehearsal, warm_up
    from ha.spark.worker import checkpoint, job_master, report

_PLACES = {
    "CheckpointPublisher": "ha.spark.driver",
    "Copied": "ha.spark.bulk.adopting",
    "JobMaster": "ha.jobmaster.master",
    "NoEndpoint": "ha.jobmaster.master",
    "Output": "ha.spark.output",
    "Rehearsal": "ha.spark.warm",
    "adopt": "ha.spark.bulk.adopting",
    "call": "ha.spark.calling",
    "checkpoint": "ha.spark.worker",
    "checkpoint_location": "ha.spark.location",
    "connect": "ha.spark.calling",
    "executor_settings": "ha.spark.location",
    "explain": "ha.spark.explaining",
    "export": "ha.spark.bulk.exporting",
    "job_master": "ha.spark.worker",
    "lead": "ha.spark.leading",
    "publish_checkpoints": "ha.spark.driver",
    "report": "ha.spark.worker",
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
    "call",
    "checkpoint",
    "checkpoint_location",
    "connect",
    "executor_settings",
    "explain",
    "export",
    "job_master",
    "lead",
    "publish_checkpoints",
    "report",
    "warm_up",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ha.spark' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # laziness is the point

    # Kept, because workers call these for every row.
    return globals().setdefault(name, getattr(import_module(_PLACES[name]), name))
