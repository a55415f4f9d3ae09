"""Count the words of text files as they arrive in a directory, and survive the loss of the driver.

    ha run JOB --endpoint jobmaster=HOST:PORT -- python examples/word_count.py --input URI --output URI

The state lives under the leader directory, so a successor goes on with exactly the batch that was not committed. Each
batch's counts appear in OUTPUT/batch=<id> at once and only once, also if a replaced driver goes on writing. With
`ha run --standby warm` and --warm a standby has run the same query over a sample before it is granted the job. It ends,
and with it the job, when a file called ``_STOP`` lies in the input directory and everything there has been counted.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

import ha
import ha.spark
from ha.leadership import Leadership
from leader.errors import LeaderError
from store.errors import NotFound, StoreError
from store.opening import open_files

QUERY = "word-count"
STOP = "_STOP"  # Spark's file source passes over names that begin like this

# Small and quick to start rather than fast in the long run: the batches of this example are tiny.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k"
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    # A driver that fails as soon as a NameNode or DataNode does would turn every trouble of HDFS into a restart: it has
    # a minute and more to find another one. Whether it still leads meanwhile is not its business but the sidecar's.
    "spark.hadoop.dfs.client.failover.max.attempts": "200",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "9",
    "spark.hadoop.dfs.client.write.exclude.nodes.cache.expiry.interval.millis": "2000",
    "spark.hadoop.dfs.client.max.block.acquire.failures": "20",
}


def who() -> tuple[str, int, str, int]:
    """What this Python worker knows of the job master: address, epoch, source, and the worker's own process id."""
    try:
        found = ha.spark.job_master()
    except LeaderError as error:
        return str(error), 0, "", os.getpid()
    return found.address, found.epoch, found.source.value, os.getpid()


def words(spark: SparkSession, source: str, files_per_batch: int) -> DataFrame:
    """The stream of words."""
    lines = spark.readStream.option("maxFilesPerTrigger", files_per_batch).text(source)
    word = sql.explode(sql.split(sql.lower(lines["value"]), r"[^\p{Alnum}']+")).alias("word")
    return lines.select(word).where("word <> ''")


def counts(spark: SparkSession, source: str, files_per_batch: int) -> DataFrame:
    """The stream of updated counts, each with what the worker that passed it on says about the job master."""
    says = sql.udf(lambda _: who(), "address string, epoch long, source string, worker long").asNondeterministic()
    counted = words(spark, source, files_per_batch).groupBy("word").count()
    return counted.withColumn("job_master", says(counted["word"]))


def start(
    spark: SparkSession, leadership: Leadership, options: argparse.Namespace, done: Callable[[], None]
) -> StreamingQuery:
    """Start the query."""
    output = ha.spark.Output(leadership, options.output, QUERY)

    def publish(batch: DataFrame, batch_id: int) -> None:
        time.sleep(options.dwell)
        if options.checkpoint_ids:
            print(f"Checkpoint id {leadership.checkpoints.next()} of {leadership.job}.", flush=True)
        published = output.write(batch.coalesce(1), batch_id)
        print(f"Batch {batch_id} {'is published' if published else 'was published before'}.", flush=True)
        done()

    return (
        counts(spark, options.input, options.max_files)
        .writeStream.queryName(QUERY)
        .outputMode("update")
        .option("checkpointLocation", ha.spark.checkpoint_location(leadership, QUERY))
        .trigger(processingTime=f"{options.interval} seconds")
        .foreachBatch(publish)
        .start()
    )


def rehearse(spark: SparkSession, options: argparse.Namespace) -> None:
    """Run the query over a sample, so that the first batch that counts is not the first one of this driver."""

    def play(rehearsal: ha.spark.Rehearsal) -> StreamingQuery:
        given = {**vars(options), "input": rehearsal.input, "output": rehearsal.output, "dwell": 0.0}
        return start(spark, rehearsal.leadership, argparse.Namespace(**given), lambda: None)

    warm = ha.spark.warm_up(spark, play, b"the quick brown fox jumps over the lazy dog\n")
    print(f"The query is {'warm' if warm else 'not warm'}.", flush=True)


class Idle:
    """When to end."""

    def __init__(self, source: str, stop_after_idle: float) -> None:
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


def session(job: str, archive: str, *, make_archive: bool) -> SparkSession:
    """Start Spark; an archive of loaded classes saves a third of the time until the first batch."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need this package, too
    options = JAVA_OPTIONS
    if archive and make_archive:
        options += f" -XX:ArchiveClassesAtExit={archive} -Xlog:disable -Xlog:all=error:stderr"
    elif archive and Path(archive).exists():
        options += f" -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
    settings = {**SETTINGS, "spark.driver.extraJavaOptions": options, **ha.spark.executor_settings()}
    return SparkSession.builder.appName(job).master("local[1]").config(map=dict(settings)).getOrCreate()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Count the words of text files as they arrive.")
    parser.add_argument("--input", required=True, metavar="URI", help="directory that text files are moved into")
    parser.add_argument("--output", required=True, metavar="URI", help="directory of the counts")
    parser.add_argument("--max-files", type=int, default=10, metavar="N", help="files per batch (%(default)s)")
    parser.add_argument("--interval", type=float, default=0.5, metavar="S", help="seconds per batch (%(default)s)")
    parser.add_argument(
        "--dwell", type=float, default=0.0, metavar="S", help="seconds a batch lasts at least, for drills"
    )
    parser.add_argument("--checkpoint-ids", action="store_true", help="draw one for each batch, and print it")
    parser.add_argument("--warm", action="store_true", help="rehearse before the job is granted")
    parser.add_argument("--stop-after-idle", type=float, default=0.0, metavar="S", help="seconds; 0: only on _STOP")
    parser.add_argument(
        "--class-archive", default="", metavar="FILE", help="Java classes to start faster with, if there"
    )
    parser.add_argument("--make-class-archive", action="store_true", help="make that file at the end: 10 s, 180 MB")
    return parser.parse_args()


def main() -> None:
    """Run until it is over."""
    options, job = arguments(), os.environ["HA_JOB"]
    spark = None
    if options.warm:
        spark = session(job, options.class_archive, make_archive=options.make_class_archive)
        rehearse(spark, options)
    with ha.lead(job) as leadership:
        spark = spark or session(job, options.class_archive, make_archive=options.make_class_archive)
        idle = Idle(options.input, options.stop_after_idle)
        with ha.spark.publish_checkpoints(spark, leadership):
            query = start(spark, leadership, options, idle.busy)
            while not query.awaitTermination(0.5):  # type: ignore[arg-type]  # seconds, also parts of them
                if idle.over():
                    query.processAllAvailable()
                    query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
