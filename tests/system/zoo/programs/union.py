"""A union of two streams."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("union").getOrCreate()
left = spark.readStream.text(os.environ["IN"])
right = spark.readStream.text(os.environ["IN_B"])
writer = left.union(right).writeStream.queryName("both").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
