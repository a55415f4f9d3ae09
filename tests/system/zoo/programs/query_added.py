"""A second query that begins later."""

import os
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("query_added").getOrCreate()


def start(name):
    lines = spark.readStream.text(os.environ["IN"])
    writer = (
        lines.writeStream.queryName(name).format(os.environ["FORMAT"]).option("format", "text").option("name", name)
    )
    return writer.start(f"{os.environ['OUT']}/{name}")


first = start("a")
while not first.lastProgress:
    time.sleep(0.2)
start("b")
spark.streams.awaitAnyTermination()
