"""Spark's own file sink."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("file_sink").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").format("text").option("path", os.environ["OUT"]).start().awaitTermination()
