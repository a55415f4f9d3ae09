"""A query that the program stops for good."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("query_removed").getOrCreate()


def start(name):
    lines = spark.readStream.text(os.environ["IN"])
    writer = (
        lines.writeStream.queryName(name).format(os.environ["FORMAT"]).option("format", "text").option("name", name)
    )
    return writer.start(f"{os.environ['OUT']}/{name}")


first, second = start("a"), start("b")
first.awaitTermination(4)
first.stop()
second.awaitTermination()
