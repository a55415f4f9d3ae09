"""The format in a program that imports nothing of this package: plain_grid.py INPUT OUTPUT. Line 0 and so on go in.

Every query publishes the lines below OUTPUT in a directory of its own name. ``workers`` adds the epoch that its Python
worker has looked up; there alone something is imported.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

QUERIES = ("format", "workers")


def epoch(_: str) -> str:
    import ha.spark.worker  # noqa: PLC0415  # not in the driver

    return str(ha.spark.worker.job_master().epoch)


if __name__ == "__main__":
    source, target = sys.argv[1:]
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    asked = sql.concat("value", sql.lit(" by "), sql.udf(epoch)("value")).alias("value")
    for name, rows in (("format", lines), ("workers", lines.select(asked))):
        writer = rows.writeStream.queryName(name).format("ha").option("path", f"{target}/{name}")
        writer.option("format", "text").option("name", name).start()
    spark.streams.awaitAnyTermination()
