"""Spark in the programs of benchmarks: small sessions, and the wait for a batch of a query."""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ha.sandbox.polling import until

try:
    from ha.sidecar.command.spark_overlay import CLOSING
except ImportError:  # of an older commit, that this one is compared with
    from ha.sidecar.spark_overlay import CLOSING  # type: ignore[import-untyped,no-redef,unused-ignore]

SPARK = {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    **CLOSING,  # as by `ha run`
}
PATIENCE = 600.0


def session(master: str, settings: Mapping[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("benchmark")
    return builder.config(map={**SPARK, **settings}).getOrCreate()


def newest(query: StreamingQuery) -> int:
    """Return the newest batch that is done, -1 without one; raise what has ended the query."""
    if (error := query.exception()) is not None:
        raise error
    return int(query.lastProgress["batchId"]) if query.lastProgress else -1


def await_batch(query: StreamingQuery, batch: int, seconds: float = PATIENCE) -> None:
    until(lambda: None if newest(query) >= batch else f"it has come to {newest(query)}", seconds, f"batch {batch}")
