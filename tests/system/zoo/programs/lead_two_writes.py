"""Two writes to an Output in one batch."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("lead_two_writes").getOrCreate()
with ha.spark.lead(os.environ["JOB"], spark) as leadership:
    output = ha.spark.Output(leadership, os.environ["OUT"], source="text")

    def split(rows, batch_id):
        output.write(rows.where("value LIKE '%u0%'"), batch_id)
        output.write(rows.where("value NOT LIKE '%u0%'"), batch_id)

    lines = spark.readStream.text(os.environ["IN"])
    lines.writeStream.queryName("orders").foreachBatch(split).start().awaitTermination()
