"""A driver that leads by ``ha.spark.lead``, alone or under ``ha run``: led.py JOB INPUT OUTPUT."""

import sys

from pyspark.sql import SparkSession

import ha.spark
from tests.system.spark.conftest import SETTINGS

job, source, target = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate()
with ha.spark.lead(job, spark) as leadership:
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    output = ha.spark.Output(leadership, target, source="text")
    query = lines.writeStream.queryName("lines").foreachBatch(output).start()
    query.awaitTermination()
