"""Training of a JVM whose classes are archived at its end: a small query, rehearsed on the real stores.

Run by ``spark-submit``. It counts words with a Python function, keeps state, and publishes batches, as most jobs do.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

import ha.spark

SAMPLE = b"the quick brown fox jumps over the lazy dog\n"


def start(spark: SparkSession, rehearsal: ha.spark.Rehearsal) -> StreamingQuery:
    """Start the query."""
    output = ha.spark.Output(rehearsal.leadership, rehearsal.output)

    def publish(batch: DataFrame, batch_id: int) -> None:
        output.write(batch.coalesce(1), batch_id)

    longer = sql.udf(lambda word: f"{word}.", "string")
    words = spark.readStream.text(rehearsal.input).select(sql.explode(sql.split("value", " ")).alias("word"))
    counted = words.groupBy("word").count()
    return (
        counted.select("count", longer("word").alias("word"))
        .writeStream.queryName("training")
        .outputMode("update")
        .option("checkpointLocation", ha.spark.checkpoint_location(rehearsal.leadership, "training"))
        .foreachBatch(publish)
        .start()
    )


def main() -> None:
    """Rehearse, and end; exit code 1 if the rehearsal failed, so that nothing is kept of it."""
    spark = SparkSession.builder.appName("training").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    done = ha.spark.warm_up(spark, lambda rehearsal: start(spark, rehearsal), SAMPLE)
    spark.stop()
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
