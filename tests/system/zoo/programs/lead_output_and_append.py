"""Output, and an append beside it."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("lead_output_and_append").getOrCreate()
with ha.spark.lead(os.environ["JOB"], spark) as leadership:
    bronze = ha.spark.Output(leadership, os.environ["OUT"] + "/bronze", "bronze", source="text")

    def write(rows, batch_id):
        rows.persist()
        bronze.write(rows, batch_id)
        rows.where("value LIKE '%u0%'").write.mode("append").text(os.environ["OUT"] + "/silver")
        rows.unpersist()

    lines = spark.readStream.text(os.environ["IN"])
    lines.writeStream.queryName("orders").foreachBatch(write).start().awaitTermination()
