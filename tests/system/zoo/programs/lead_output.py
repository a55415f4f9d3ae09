"""ha.spark.lead and Output."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("lead_output").getOrCreate()
with ha.spark.lead(os.environ["JOB"], spark) as leadership:
    output = ha.spark.Output(leadership, os.environ["OUT"], source="text")
    lines = spark.readStream.text(os.environ["IN"])
    lines.writeStream.queryName("orders").foreachBatch(output).start().awaitTermination()
