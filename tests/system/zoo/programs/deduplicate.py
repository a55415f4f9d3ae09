"""dropDuplicates."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("deduplicate").getOrCreate()
events = spark.readStream.schema("id LONG, user STRING, at TIMESTAMP").json(os.environ["IN"])
writer = (
    events.dropDuplicates(["id"])
    .selectExpr("CAST(id AS STRING)")
    .writeStream.queryName("orders")
    .format(os.environ["FORMAT"])
    .option("format", "text")
)
writer.option("path", os.environ["OUT"]).start().awaitTermination()
