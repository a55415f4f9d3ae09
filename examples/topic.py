"""Write a Kafka topic into files, each record once, through the loss of any driver.

    ha run JOB -- python examples/topic.py --brokers HOST:PORT --topic orders --output URI

Spark's connector for Kafka must be among its jars: ``--conf spark.jars=...`` of spark-submit, or PYSPARK_SUBMIT_ARGS.
Each row has the partition and the offset of its record, so two outputs can be compared as sets. A batch ends where the
checkpoint says, so a successor reads exactly what its predecessor had begun. ``ha stop JOB`` ends it after a batch.
"""

import argparse
import os

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from running import session

import ha
import ha.spark


def arguments() -> argparse.Namespace:
    """Read the command line."""
    known = argparse.ArgumentParser(description="Write a Kafka topic into files.")
    known.add_argument("--brokers", required=True, metavar="HOST:PORT,...", help="of Kafka")
    known.add_argument("--topic", required=True, help="it must exist")
    known.add_argument("--output", required=True, metavar="URI", help="directory of the files")
    known.add_argument("--most", type=int, default=10_000, metavar="N", help="records a batch (%(default)s)")
    known.add_argument("--interval", type=float, default=0.5, metavar="S", help="seconds per batch (%(default)s)")
    return known.parse_args()


def main() -> None:
    """Run until somebody stops it."""
    options = arguments()
    job = ha.spark.Job(os.environ["HA_JOB"])

    @job.query(reads=[f"kafka:{options.topic}"], writes=[options.output])
    def records(spark: SparkSession, leadership: ha.Leadership) -> DataStreamWriter:
        """Publish each batch of records."""
        source = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", options.brokers)
            .option("subscribe", options.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", options.most)
            .load()
        )
        rows = source.selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
        output = ha.spark.Output(leadership, options.output)
        return rows.writeStream.trigger(processingTime=f"{options.interval} seconds").foreachBatch(output)

    job.run(session(job.name))


if __name__ == "__main__":
    main()
