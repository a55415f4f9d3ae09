"""Two declared queries."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("job_two_queries").getOrCreate()
job = ha.spark.Job(os.environ["JOB"])


@job.query()
def orders(spark, leadership):
    output = ha.spark.Output(leadership, os.environ["OUT"] + "/a", "a", source="text")
    lines = spark.readStream.text(os.environ["IN"])
    return lines.writeStream.foreachBatch(output)


@job.query()
def copies(spark, leadership):
    output = ha.spark.Output(leadership, os.environ["OUT"] + "/b", "b", source="text")
    lines = spark.readStream.text(os.environ["IN"])
    return lines.writeStream.foreachBatch(output)


job.run(spark)
