"""A program that counts the words of a topic once through, and publishes each count that changes."""

import sys

from pyspark.sql import SparkSession

import ha.spark
from tests.patience import PATIENCE_S

SETTINGS = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}

job, files, brokers, topic, out = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate()
with ha.spark.lead(job, spark, timeout=PATIENCE_S, files=files, zookeeper="") as leadership:
    lines = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    words = lines.option("startingOffsets", "earliest").load().selectExpr("CAST(value AS STRING) AS word")
    output = ha.spark.Output(leadership, out, "counts")
    counted = words.groupBy("word").count().writeStream.outputMode("update").queryName("words")
    query = counted.foreachBatch(output).trigger(availableNow=True).start()
    query.awaitTermination()
