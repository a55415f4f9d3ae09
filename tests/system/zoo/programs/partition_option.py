"""A partitioned output."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("partition_option").getOrCreate()
events = spark.readStream.schema("id LONG, user STRING, at TIMESTAMP").json(os.environ["IN"])
rows = events.selectExpr("CAST(id AS STRING) AS id", "user")
writer = (
    rows.writeStream.queryName("orders")
    .format(os.environ["FORMAT"])
    .option("format", "text")
    .option("partitionBy", "user")
    .partitionBy("user")
)
writer.option("path", os.environ["OUT"]).start().awaitTermination()
