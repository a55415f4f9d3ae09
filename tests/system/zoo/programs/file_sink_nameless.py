"""Spark's own file sink, a query without a name."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("file_sink_nameless").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.format("text").option("path", os.environ["OUT"]).start().awaitTermination()
