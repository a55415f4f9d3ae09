"""Write a Kafka topic into files, each record once, through the loss of any driver.

    ha run JOB -- python examples/topic.py --brokers HOST:PORT --topic orders --output URI

Spark's connector for Kafka must be among its jars: ``--conf spark.jars=...`` of spark-submit, or PYSPARK_SUBMIT_ARGS.
Each row has the partition and the offset of its record, so two outputs can be compared as sets. A batch ends where the
checkpoint says, so a successor reads exactly what its predecessor had begun. With `ha run --standby warm` and --warm a
standby has run the same query over the topic's first records, into a directory that is deleted, before it is granted
the job. ``ha job stop JOB`` ends it after a batch.
"""

import argparse
import os

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from running import session

import ha
import ha.spark

QUERY = "records"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    known = argparse.ArgumentParser(description="Write a Kafka topic into files.")
    known.add_argument("--brokers", required=True, metavar="HOST:PORT,...", help="of Kafka")
    known.add_argument("--topic", required=True, help="it must exist")
    known.add_argument("--output", required=True, metavar="URI", help="directory of the files")
    known.add_argument("--most", type=int, default=10_000, metavar="N", help="records a batch (%(default)s)")
    known.add_argument("--interval", type=float, default=0.5, metavar="S", help="seconds per batch (%(default)s)")
    known.add_argument("--warm", action="store_true", help="rehearse before the job is granted")
    return known.parse_args()


def records(
    spark: SparkSession, leadership: ha.Leadership, options: argparse.Namespace, most: int, target: str
) -> DataStreamWriter:
    """Return the writer that publishes batches of at most so many records to a directory."""
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.brokers)
        .option("subscribe", options.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", most)
        .load()
    )
    rows = source.selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
    output = ha.spark.Output(leadership, target)
    return rows.writeStream.trigger(processingTime=f"{options.interval} seconds").foreachBatch(output)


def rehearse(spark: SparkSession, options: argparse.Namespace) -> None:
    """Rehearse the query over the topic's first records, so that the client of Kafka is warm, too."""

    def play(rehearsal: ha.spark.Rehearsal) -> StreamingQuery:
        writer = records(spark, rehearsal.leadership, options, 1, rehearsal.output)  # one record of each partition
        location = ha.spark.checkpoint_location(rehearsal.leadership, QUERY)
        return writer.queryName(QUERY).option("checkpointLocation", location).start()

    warm = ha.spark.warm_up(spark, play)
    print(f"The query is {'warm' if warm else 'not warm'}.", flush=True)


def main() -> None:
    """Run until somebody stops it."""
    options = arguments()
    job = ha.spark.Job(os.environ["HA_JOB"])

    @job.query(name=QUERY, reads=[f"kafka:{options.topic}"], writes=[options.output])
    def query(spark: SparkSession, leadership: ha.Leadership) -> DataStreamWriter:
        """Publish each batch of records."""
        return records(spark, leadership, options, options.most, options.output)

    spark = session(job.name)
    if options.warm:
        rehearse(spark, options)
    job.run(spark)


if __name__ == "__main__":
    main()
