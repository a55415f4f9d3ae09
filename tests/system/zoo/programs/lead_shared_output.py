"""One Output for two queries."""

import os

from pyspark.sql import SparkSession

import ha.spark

spark = SparkSession.builder.appName("lead_shared_output").getOrCreate()
with ha.spark.lead(os.environ["JOB"], spark) as leadership:
    output = ha.spark.Output(leadership, os.environ["OUT"], source="text")
    for name in ("IN", "IN_B"):
        lines = spark.readStream.text(os.environ[name])
        lines.writeStream.queryName(name.lower()).foreachBatch(output).start()
    spark.streams.awaitAnyTermination()
