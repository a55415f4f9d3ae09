"""A Kafka topic to another one."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("kafka_to_kafka").getOrCreate()
topics = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", os.environ["BROKERS"])
    .option("subscribe", f"{os.environ['TOPICS']}-a")
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 5)
    .load()
)
writer = topics.selectExpr("value").writeStream.queryName("orders").format("kafka")
writer = writer.option("kafka.bootstrap.servers", os.environ["BROKERS"]).option("topic", f"{os.environ['TOPICS']}.out")
writer.start().awaitTermination()
