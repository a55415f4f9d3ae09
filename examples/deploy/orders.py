"""A job that leads by itself, for clusters that choose the driver's host: orders.py JOB INPUT OUTPUT.

It names no master: ``spark-submit`` does. Where it runs, and how it is submitted: ``docs/deploying.md``.
"""

import sys

from pyspark.sql import SparkSession

import ha.spark


def main() -> None:
    """Wait for the leadership, then copy new lines until it ends."""
    job, source, target = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    with ha.spark.lead(job, spark) as leadership:
        output = ha.spark.Output(leadership, target, source="text")
        lines.writeStream.queryName("lines").foreachBatch(output).start().awaitTermination()


if __name__ == "__main__":
    main()
