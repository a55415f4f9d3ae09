"""A declared query that appends by itself."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("job_appends").getOrCreate()
job = ha.spark.Job(os.environ["JOB"])


@job.query()
def orders(spark, leadership):
    lines = spark.readStream.text(os.environ["IN"])
    return lines.writeStream.foreachBatch(lambda rows, _: rows.write.mode("append").text(os.environ["OUT"]))


job.run(spark)
