"""Declared queries with availableNow, by cron."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("job_available_now").getOrCreate()
job = ha.spark.Job(os.environ["JOB"])


@job.query()
def orders(spark, leadership):
    output = ha.spark.Output(leadership, os.environ["OUT"], source="text")
    lines = spark.readStream.text(os.environ["IN"])
    return lines.writeStream.trigger(availableNow=True).foreachBatch(output)


job.run(spark)
