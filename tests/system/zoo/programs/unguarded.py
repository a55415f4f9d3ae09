"""A plain program under ha run without --spark."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("unguarded").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").option("checkpointLocation", os.environ["BASE"] + "/mine")
writer.format("text").option("path", os.environ["OUT"]).start().awaitTermination()
