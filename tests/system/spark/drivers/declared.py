"""A driver of declared queries that leads by itself: declared.py JOB INPUT OUTPUT."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import ha
import ha.spark
from tests.system.spark.conftest import SETTINGS

name, source, target = sys.argv[1:]
job = ha.spark.Job(name)


@job.query(reads=[source], writes=[target])
def lines(spark: SparkSession, leadership: ha.Leadership) -> DataStreamWriter:
    read = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    return read.writeStream.foreachBatch(ha.spark.Output(leadership, target, source="text"))


job.run(SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate())
