"""Partition advice: recommends a number of state partitions for a new query, before Spark freezes the number.

A query runs a task for each of them in every batch: with fewer than cores some of these idle, with many more each batch
pays for tasks that have little to do. Twice the cores leaves head room: the cluster can double.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"

HEAD_ROOM = 2
MOST_FOR_EACH_CORE = 4

_log = logging.getLogger("ha")


def advised(cores: int) -> int:
    """Return the number of state partitions for a new query."""
    return HEAD_ROOM * cores


def suits(partitions: int, cores: int) -> bool:
    """Whether a number of state partitions deserves no warning."""
    return cores <= partitions <= MOST_FOR_EACH_CORE * cores


def advise(spark: "SparkSession", job: str) -> None:
    """Log it if the first queries of a job would get a number of state partitions that does not suit its cores."""
    partitions, cores = spark.conf.get(PARTITIONS), spark.sparkContext.defaultParallelism
    if partitions and not suits(int(partitions), cores):
        _log.warning(
            "%s: new queries get %s partitions for their state, on %d cores, and Spark freezes that with the first "
            "batch. Set %s to %d, which leaves room for twice as many cores. Later only `ha checkpoint "
            "rescale` changes it.",
            job, partitions, cores, PARTITIONS, advised(cores),
        )  # fmt: skip
