"""The rate source."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("rate_source").getOrCreate()
numbers = spark.readStream.format("rate").option("rowsPerSecond", 3).load()
writer = (
    numbers.selectExpr("CAST(value AS STRING)")
    .writeStream.queryName("numbers")
    .format(os.environ["FORMAT"])
    .option("format", "text")
)
writer.option("path", os.environ["OUT"]).start().awaitTermination()
