"""Shared by the examples: a small Spark session, and the end of a job."""

import argparse
import os
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha.spark
from store.errors import NotFound, StoreError
from store.open import open_files

STOP = "_STOP"  # Spark's file source skips names that begin with an underscore

# Small and quick to start, but not fast in the long run, because the batches of these examples are tiny.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # The one task that writes a batch aggregates all partitions of the state, and keeps pages for each until it ends:
    # after a rescale to 32 partitions, pages of Spark's size were more than this memory.
    "spark.buffer.pageSize": "1m",
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    # A successor reads all deltas since the last snapshot. A driver takes its first snapshot after this interval, 60 s
    # by default, so drivers that live shorter would never take one.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # A driver that fails together with a NameNode or DataNode would turn every trouble of HDFS into a restart. It has a
    # minute and more to find another one. Meanwhile the sidecar decides whether it still leads.
    "spark.hadoop.dfs.client.failover.max.attempts": "200",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "13",
    "spark.hadoop.dfs.client.write.exclude.nodes.cache.expiry.interval.millis": "2000",
    "spark.hadoop.dfs.client.max.block.acquire.failures": "20",
    # A client that closes a file before the DataNode has reported its block asks again, usually after 400 ms. That is
    # as long as one of these batches, and a batch closes five files.
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
}


def session(job: str, **settings: str) -> SparkSession:
    """Start Spark."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need this package, too
    options = {"spark.driver.extraJavaOptions": JAVA_OPTIONS}
    known = {**SETTINGS, **options, **ha.spark.executor_settings(), **settings}
    return SparkSession.builder.appName(job).master("local[1]").config(map=dict(known)).getOrCreate()


class Idle:
    """Decides when to end: a file ``_STOP`` is in the input directory, or no input has arrived for a long time."""

    def __init__(self, source: str, stop_after_idle: float = 0.0) -> None:
        self._files = open_files(source)
        self._stop_after_idle = stop_after_idle
        self._last = time.monotonic()

    def busy(self) -> None:
        """Take note of a completed batch."""
        self._last = time.monotonic()

    def over(self) -> bool:
        """Whether it is time to end."""
        if self._stop_after_idle and time.monotonic() - self._last > self._stop_after_idle:
            return True
        try:
            return any(entry.name == STOP for entry in self._files.call("stop", lambda files: files.list(""), 5.0))
        except NotFound:
            return False
        except StoreError as error:
            print(f"The store does not say whether to stop: {error}", flush=True)
            return False


def run_until_over(query: StreamingQuery, idle: Idle) -> None:
    """Wait for the end, and let the query process the input until then."""
    while not query.awaitTermination(0.5):  # type: ignore[arg-type]  # seconds, with a fraction
        if idle.over():
            query.processAllAvailable()
            query.stop()


def parser(description: str, inside: str) -> argparse.ArgumentParser:
    """Return a parser of the common arguments; ``inside`` says what the example reads."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--input", required=True, metavar="URI", help=inside)
    made.add_argument("--output", required=True, metavar="URI", help="directory of what comes of it")
    made.add_argument("--max-files", type=int, default=10, metavar="N", help="files per batch (%(default)s)")
    made.add_argument("--interval", type=float, default=0.5, metavar="S", help="seconds per batch (%(default)s)")
    return made
