"""Relative paths."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("relative_path").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["RELATIVE"]).start().awaitTermination()
