"""Queries that are started on threads of the program."""

import os
import threading

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("started_in_threads").getOrCreate()


def start(name):
    lines = spark.readStream.text(os.environ["IN"])
    writer = lines.writeStream.queryName(name).format(os.environ["FORMAT"]).option("format", "text")
    writer.option("path", f"{os.environ['OUT']}/{name}").start()


threads = [threading.Thread(target=start, args=(name,)) for name in ("a", "b")]
for each in threads:
    each.start()
for each in threads:
    each.join()
spark.streams.awaitAnyTermination()
