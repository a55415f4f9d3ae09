"""toTable."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("to_table").getOrCreate()
lines = spark.readStream.text(os.environ["IN"])
lines.writeStream.queryName("orders").format("text").option("path", os.environ["OUT"]).toTable(
    "orders"
).awaitTermination()
