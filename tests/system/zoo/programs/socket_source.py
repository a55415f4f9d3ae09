"""The socket source, into an output."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("socket_source").getOrCreate()
lines = spark.readStream.format("socket").option("host", "localhost").option("port", 9999).load()
writer = lines.writeStream.queryName("lines").format(os.environ["FORMAT"]).option("format", "text")
writer.option("path", os.environ["OUT"]).start().awaitTermination()
