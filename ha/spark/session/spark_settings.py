"""Spark's settings that last: how many batches it retains, and the number of partitions that a query's state gets.

A completed checkpoint is a name, and the batch itself is in Spark's checkpoint, for as long as Spark retains it. Each
has a setting. If Spark's were smaller, ``ha checkpoint list`` would list batches to which no query can be put back.

A query runs a task for each partition of its state in every batch: with fewer than cores some of these idle, with many
more each batch pays for tasks that have little to do. Twice the cores leaves head room: the cluster can double.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_BATCHES = "spark.sql.streaming.minBatchesToRetain"
SPARKS = 100  # Spark's own default

PARTITIONS = "spark.sql.shuffle.partitions"
HEAD_ROOM, MOST_FOR_EACH_CORE = 2, 4

_log = logging.getLogger("ha")


def enough(published: int) -> int:
    """Return how many batches Spark has to retain; one more, because a batch that has begun counts there."""
    return published + 1


def for_retained(spark: "SparkSession", job: str, published: int) -> dict[str, str]:
    """Return Spark's setting if it must be greater than it is, for so many completed checkpoints; else nothing."""
    present, wanted = int(spark.conf.get(MIN_BATCHES, f"{SPARKS}") or SPARKS), enough(published)
    if present >= wanted:
        return {}
    _log.warning(
        "%s: %s is %d, and %d completed checkpoints of each query are listed: it is set to %d, so that a query can be "
        "put back to each. For less, set checkpoints_retained to %d.",
        job, MIN_BATCHES, present, published, wanted, max(1, present - 1),
    )  # fmt: skip
    return {MIN_BATCHES: f"{wanted}"}


def advise(spark: "SparkSession", job: str) -> None:
    """Log it if the first queries of a job would get a number of state partitions that does not suit its cores."""
    partitions, cores = spark.conf.get(PARTITIONS), spark.sparkContext.defaultParallelism
    if partitions and not cores <= int(partitions) <= MOST_FOR_EACH_CORE * cores:
        _log.warning(
            "%s: new queries get %s partitions for their state, on %d cores, and Spark freezes that with the first "
            "batch. Set %s to %d, which leaves room for twice as many cores. Later only `ha checkpoint "
            "rescale` changes it.",
            job, partitions, cores, PARTITIONS, HEAD_ROOM * cores,
        )  # fmt: skip
