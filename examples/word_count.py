"""Count the words of text files as they arrive in a directory, and survive the loss of the driver.

    ha run JOB --endpoint jobmaster=HOST:PORT -- python examples/word_count.py --input URI --output URI

The state lives under the leader directory, so a successor goes on with exactly the batch that was not committed. Each
batch's counts appear in OUTPUT/batch=<id> at once and only once, also if a replaced driver goes on writing. With
`ha run --standby warm` and --warm a standby has run the same query over a sample before it is granted the job. It ends,
and with it the job, when a file called ``_STOP`` lies in the input directory and everything there has been counted.
"""

import argparse
import os
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from running import Idle, parser, run_until_over, session

import ha
import ha.spark
import ha.spark.worker
from ha.leadership.leadership import Leadership
from leader.errors import LeaderError

QUERY = "word-count"


def who() -> tuple[str, int, str, int]:
    """Return what this Python worker knows of the job master: address, epoch, source, and the worker's process id."""
    try:
        found = ha.spark.worker.job_master()
    except LeaderError as error:
        return str(error), 0, "", os.getpid()
    return found.address, found.epoch, found.source.value, os.getpid()


def words(spark: SparkSession, source: str, files_per_batch: int) -> DataFrame:
    """Return the stream of words."""
    lines = spark.readStream.option("maxFilesPerTrigger", files_per_batch).text(source)
    word = sql.explode(sql.split(sql.lower(lines["value"]), r"[^\p{Alnum}']+")).alias("word")
    return lines.select(word).where("word <> ''")


def twice(lines: DataFrame) -> DataFrame:
    """Return each word two times, as a bad version would: for drills."""
    return lines.select(sql.explode(sql.array("word", "word")).alias("word"))


def counts(spark: SparkSession, source: str, files_per_batch: int, *, bad: bool = False) -> DataFrame:
    """Return the stream of updated counts, each with what its worker knows of the job master."""
    says = sql.udf(lambda _: who(), "address string, epoch long, source string, worker long").asNondeterministic()
    found = words(spark, source, files_per_batch)
    counted = (twice(found) if bad else found).groupBy("word").count()
    return counted.withColumn("job_master", says(counted["word"]))


def start(
    spark: SparkSession, leadership: Leadership, options: argparse.Namespace, done: Callable[[], None]
) -> StreamingQuery:
    """Start the query, and return it."""
    output = ha.spark.Output(leadership, options.output, QUERY)

    def publish(batch: DataFrame, batch_id: int) -> None:
        time.sleep(options.dwell)
        if options.checkpoint_ids:
            print(f"Checkpoint id {leadership.checkpoints.next()} of {leadership.job}.", flush=True)
        published = output.write(batch.coalesce(1), batch_id)
        print(f"Batch {batch_id} {'is published' if published else 'was published before'}.", flush=True)
        done()

    return (
        counts(spark, options.input, options.max_files, bad=options.twice)
        .writeStream.queryName(QUERY)
        .outputMode("update")
        .option("checkpointLocation", ha.spark.checkpoint_location(leadership, QUERY))
        .trigger(processingTime=f"{options.interval} seconds")
        .foreachBatch(publish)
        .start()
    )


def rehearse(spark: SparkSession, options: argparse.Namespace) -> None:
    """Rehearse the query over a sample, so that its first real batch is not the first batch of this driver."""

    def play(rehearsal: ha.spark.Rehearsal) -> StreamingQuery:
        given = {**vars(options), "input": rehearsal.input, "output": rehearsal.output, "dwell": 0.0}
        return start(spark, rehearsal.leadership, argparse.Namespace(**given), lambda: None)

    warm = ha.spark.warm_up(spark, play, b"the quick brown fox jumps over the lazy dog\n")
    print(f"The query is {'warm' if warm else 'not warm'}.", flush=True)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    known: argparse.ArgumentParser = parser(
        "Count the words of text files as they arrive.", "directory that text files are moved into"
    )
    known.add_argument(
        "--dwell", type=float, default=0.0, metavar="S", help="seconds a batch lasts at least, for drills"
    )
    known.add_argument("--twice", action="store_true", help="count each word twice, as a bad version would, for drills")
    known.add_argument("--checkpoint-ids", action="store_true", help="draw one for each batch, and print it")
    known.add_argument("--warm", action="store_true", help="rehearse before the job is granted")
    known.add_argument("--stop-after-idle", type=float, default=0.0, metavar="S", help="seconds; 0: only on _STOP")
    return known.parse_args()


def main() -> None:
    """Run until the end of the input."""
    options, job = arguments(), os.environ["HA_JOB"]
    spark = session(job)
    if options.warm:
        rehearse(spark, options)
    with ha.spark.lead(job, spark) as leadership:
        idle = Idle(options.input, options.stop_after_idle)
        run_until_over(start(spark, leadership, options, idle.busy), idle)
    spark.stop()


if __name__ == "__main__":
    main()
