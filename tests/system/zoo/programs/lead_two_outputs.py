"""Two Outputs in one batch, with cache."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("lead_two_outputs").getOrCreate()
with ha.spark.lead(os.environ["JOB"], spark) as leadership:
    bronze = ha.spark.Output(leadership, os.environ["OUT"] + "/bronze", "bronze", source="text")
    silver = ha.spark.Output(leadership, os.environ["OUT"] + "/silver", "silver", source="text")

    def write(rows, batch_id):
        rows.persist()
        bronze.write(rows, batch_id)
        silver.write(rows.where("value LIKE '%u0%'"), batch_id)
        rows.unpersist()

    lines = spark.readStream.text(os.environ["IN"])
    lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
