"""A driver that keeps what it has seen: distinct.py INPUT OUTPUT [JOB]. Without a job ``ha run --spark`` leads it."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import ha.spark
from tests.system.spark.conftest import SETTINGS

source, target, *job = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate()


def distinct() -> DataStreamWriter:
    lines: DataFrame = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    return lines.dropDuplicates(["value"]).writeStream.queryName("distinct")


if job:
    spark.range(10).groupBy("id").count().collect()  # as a rehearsal does it: the JVM has made its directories
    with ha.spark.lead(job[0], spark) as leadership:
        output = ha.spark.Output(leadership, target, source="text")
        distinct().foreachBatch(output).start().awaitTermination()
else:
    distinct().format("ha").option("path", target).option("format", "text").start().awaitTermination()
