"""Spark's own file sink, a query with another name at each start."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("file_sink_renamed").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName(f"orders-{os.getpid()}").format("text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
