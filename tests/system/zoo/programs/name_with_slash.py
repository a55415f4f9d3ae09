"""A query name with a slash."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("name_with_slash").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("bronze/orders").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
