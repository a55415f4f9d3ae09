"""A checkpoint directory in the builder's configuration."""

import os

from pyspark.sql import SparkSession

builder = SparkSession.builder.appName("checkpoint_by_builder")
mine = os.environ["BASE"] + "/mine"
spark = builder.config("spark.sql.streaming.checkpointLocation", mine).getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
