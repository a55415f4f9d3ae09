"""Counts in update mode into an Output."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("lead_counts").getOrCreate()
with ha.spark.lead(os.environ["JOB"], spark) as leadership:
    output = ha.spark.Output(leadership, os.environ["OUT"], source="text")
    events = spark.readStream.schema("id LONG, user STRING, at TIMESTAMP").json(os.environ["IN"])
    counts = events.groupBy("id").count().selectExpr("concat(id, ' ', count) AS value")
    counts.writeStream.queryName("counts").outputMode("update").foreachBatch(output).start().awaitTermination()
