"""A query name with blanks and letters of Unicode."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("name_with_blank").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("größe v2").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
