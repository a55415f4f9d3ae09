"""Spark's own file sink, two queries into one directory."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("file_sink_shared").getOrCreate()
for name in ("a", "b"):
    lines = spark.readStream.text(os.environ["IN" if name == "a" else "IN_B"])
    lines.writeStream.queryName(name).format("text").start(os.environ["OUT"])
spark.streams.awaitAnyTermination()
