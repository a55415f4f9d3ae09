"""High availability for PySpark: what a driver publishes and protects.

Code in Python workers uses :mod:`ha.spark.worker`, and operators use :mod:`ha.spark.tools`.
Imports are lazy, so a worker imports neither the driver's modules nor PySpark.

Two things are not. Other users are kept from the port by which Spark calls the program, and under ``ha run --engine``
PySpark is prepared for the JVM that is there. So this import stands before the session is built.
"""

import os
from typing import TYPE_CHECKING, Any

from ha.hook.entry import install
from ha.hosts import own_packages
from ha.spark.session.callback_guard import changes

if TYPE_CHECKING:
    from ha.outputs.partition_commit import CommittedPartition, PartitionCommit
    from ha.spark.driver.lead_session import lead
    from ha.spark.driver.rehearsal import Rehearsal, warm_up
    from ha.spark.outputs.dead_letters import DeadLetters
    from ha.spark.outputs.output import Output
    from ha.spark.outputs.regional_output import RegionalOutput
    from ha.spark.outputs.table import Table
    from ha.spark.outputs.topic import Topic
    from ha.spark.queries.query_events import publish_checkpoints
    from ha.spark.session.frozen import named_source
    from ha.spark.session.reattaching import reattach_or_start
    from ha.spark.stored.locations import checkpoint_location, executor_settings
    from ha.spark.supervision.flow import file_regions, kafka_regions
    from ha.spark.supervision.job import Job

_PLACES = {
    "CommittedPartition": "ha.outputs.partition_commit",
    "DeadLetters": "ha.spark.outputs.dead_letters",
    "Job": "ha.spark.supervision.job",
    "Output": "ha.spark.outputs.output",
    "PartitionCommit": "ha.outputs.partition_commit",
    "RegionalOutput": "ha.spark.outputs.regional_output",
    "Rehearsal": "ha.spark.driver.rehearsal",
    "Table": "ha.spark.outputs.table",
    "Topic": "ha.spark.outputs.topic",
    "reattach_or_start": "ha.spark.session.reattaching",
    "checkpoint_location": "ha.spark.stored.locations",
    "executor_settings": "ha.spark.stored.locations",
    "file_regions": "ha.spark.supervision.flow",
    "kafka_regions": "ha.spark.supervision.flow",
    "lead": "ha.spark.driver.lead_session",
    "named_source": "ha.spark.session.frozen",
    "publish_checkpoints": "ha.spark.queries.query_events",
    "warm_up": "ha.spark.driver.rehearsal",
}

__all__ = [
    "CommittedPartition", "DeadLetters", "Job", "Output", "PartitionCommit", "RegionalOutput", "Rehearsal", "Table",
    "Topic", "checkpoint_location", "executor_settings", "file_regions", "kafka_regions", "lead", "named_source",
    "publish_checkpoints", "reattach_or_start", "warm_up",
]  # fmt: skip


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
    return getattr(module, name)


own_packages.check()
install(changes())

if os.environ.get("HA_ENGINE"):
    from ha.spark.session.reattaching import prepare

    prepare()
