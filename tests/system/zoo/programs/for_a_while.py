"""A query that is stopped after a while, by a scheduler's program."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("for_a_while").getOrCreate()
lines = spark.readStream.option("maxFilesPerTrigger", 1).text(os.environ["IN"])
writer = lines.writeStream.queryName("orders").format(os.environ["FORMAT"]).option("format", "text")
query = writer.option("path", os.environ["OUT"]).start()
query.awaitTermination(5)
query.stop()
