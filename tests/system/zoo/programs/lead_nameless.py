"""Output and a query without a name."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("lead_nameless").getOrCreate()
with ha.spark.lead(os.environ["JOB"], spark) as leadership:
    output = ha.spark.Output(leadership, os.environ["OUT"], source="text")
    lines = spark.readStream.text(os.environ["IN"])
    lines.writeStream.foreachBatch(output).start().awaitTermination()
