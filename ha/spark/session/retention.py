"""Retention: Spark retains at least the batches that the job lists as completed checkpoints.

A completed checkpoint is a name, and the batch itself is in Spark's checkpoint, for as long as Spark retains it. Each
has a setting. If Spark's were smaller, ``ha checkpoint list`` would list batches to which no query can be put back.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_BATCHES = "spark.sql.streaming.minBatchesToRetain"

SPARKS = 100  # Spark's own default

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
