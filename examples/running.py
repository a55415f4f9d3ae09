"""What the examples share: a Spark session that is small, and the end of a job."""

import argparse
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha.spark
from store.errors import NotFound, StoreError
from store.opening import open_files

STOP = "_STOP"  # Spark's file source passes over names that begin like this

# Small and quick to start rather than fast in the long run: the batches of these examples are tiny.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k"
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
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    # Whoever takes over reads all deltas since the last snapshot, and a driver takes the first one after this interval
    # (60 s): of drivers that live for less nobody ever takes one.
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # A driver that fails as soon as a NameNode or DataNode does would turn every trouble of HDFS into a restart: it has
    # a minute and more to find another one. Whether it still leads meanwhile is not its business but the sidecar's.
    "spark.hadoop.dfs.client.failover.max.attempts": "200",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "13",
    "spark.hadoop.dfs.client.write.exclude.nodes.cache.expiry.interval.millis": "2000",
    "spark.hadoop.dfs.client.max.block.acquire.failures": "20",
    # Who closes a file before the DataNode has reported its block asks again: usually after 400 ms, which is as long as
    # a batch of these, and a batch closes five files.
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
}


def session(job: str, archive: str = "", *, make_archive: bool = False, **settings: str) -> SparkSession:
    """Start Spark; an archive of loaded classes saves a third of the time until the first batch."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need this package, too
    options = JAVA_OPTIONS
    if archive and make_archive:
        options += f" -XX:ArchiveClassesAtExit={archive} -Xlog:disable -Xlog:all=error:stderr"
    elif archive and Path(archive).exists():
        options += f" -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
    known = {**SETTINGS, "spark.driver.extraJavaOptions": options, **ha.spark.executor_settings(), **settings}
    return SparkSession.builder.appName(job).master("local[1]").config(map=dict(known)).getOrCreate()


class Idle:
    """When to end: somebody has put a file called ``_STOP`` into the input directory, or nothing has come for long."""

    def __init__(self, source: str, stop_after_idle: float = 0.0) -> None:
        self._files = open_files(source)
        self._stop_after_idle = stop_after_idle
        self._last = time.monotonic()

    def busy(self) -> None:
        """A batch was done."""
        self._last = time.monotonic()

    def over(self) -> bool:
        """Whether somebody said so, or nothing has come for long."""
        if self._stop_after_idle and time.monotonic() - self._last > self._stop_after_idle:
            return True
        try:
            return any(entry.name == STOP for entry in self._files.call("stop", lambda files: files.list(""), 5.0))
        except NotFound:
            return False
        except StoreError as error:
            print(f"Whether to stop is not known: {error}", flush=True)
            return False


def run_until_over(query: StreamingQuery, idle: Idle) -> None:
    """Wait for the end, and let the query do what is there by then."""
    while not query.awaitTermination(0.5):  # type: ignore[arg-type]  # seconds, also parts of them
        if idle.over():
            query.processAllAvailable()
            query.stop()


def parser(description: str, inside: str) -> argparse.ArgumentParser:
    """Return a parser of what every example is told; ``inside`` says what it reads."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--input", required=True, metavar="URI", help=inside)
    made.add_argument("--output", required=True, metavar="URI", help="directory of what comes of it")
    made.add_argument("--max-files", type=int, default=10, metavar="N", help="files per batch (%(default)s)")
    made.add_argument("--interval", type=float, default=0.5, metavar="S", help="seconds per batch (%(default)s)")
    return made
