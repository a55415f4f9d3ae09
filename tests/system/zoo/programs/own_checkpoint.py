"""A checkpoint of the program's own."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("own_checkpoint").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").option("checkpointLocation", os.environ["BASE"] + "/mine")
writer.format(os.environ["FORMAT"]).option("format", "text").start(os.environ["OUT"]).awaitTermination()
