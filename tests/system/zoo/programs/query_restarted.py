"""A query that the program stops and starts."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("query_restarted").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
while True:
    writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
    query = writer.start(os.environ["OUT"])
    query.awaitTermination(3)
    query.stop()
