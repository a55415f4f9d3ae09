"""Kafka topics by a pattern."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("kafka_pattern").getOrCreate()
topics = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", os.environ["BROKERS"])
    .option("subscribePattern", f"{os.environ['TOPICS']}-.*")
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 5)
    .load()
)
writer = (
    topics.selectExpr("CAST(value AS STRING)")
    .writeStream.queryName("orders")
    .format(os.environ["FORMAT"])
    .option("format", "text")
)
writer.option("path", os.environ["OUT"]).start().awaitTermination()
