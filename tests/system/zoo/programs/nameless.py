"""A query without a name."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("nameless").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
