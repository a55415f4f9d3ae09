"""A driver with two declared queries, of which one reads what the other writes: chained.py JOB INPUT MIDDLE OUTPUT."""

import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import ha.spark
from ha.leadership.leadership import Leadership
from tests.system.spark.conftest import SETTINGS

name, source, middle, target = sys.argv[1:]
job = ha.spark.Job(name)


@job.query(reads=["in"], writes=["middle"])
def clean(spark: SparkSession, leadership: Leadership) -> Any:
    """Publish each number; several batches a second."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    output = ha.spark.Output(leadership, middle, name="middle")
    return lines.select(F.col("value").cast("long")).writeStream.foreachBatch(output)


@job.query(reads=["middle"], writes=["out"])
def sums(spark: SparkSession, leadership: Leadership) -> Any:
    rows = spark.readStream.schema("value long, batch long").option("maxFilesPerTrigger", 2).json(middle)
    found = rows.groupBy((F.col("value") % 3).alias("key")).agg(F.sum("value").alias("sum"), F.count("*").alias("n"))
    output = ha.spark.Output(leadership, target, name="sums")
    return found.writeStream.outputMode("complete").foreachBatch(output)


job.run(SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate())
