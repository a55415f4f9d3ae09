"""A driver whose queries outlive it under ``ha run --engine``: engine.py JOB INPUT OUTPUT.

``words`` has state in RocksDB and ``spelt`` a Python function, and both go on. ``lines`` publishes by ``foreachBatch``.
"""

import logging
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import count, udf
from pyspark.sql.streaming.readwriter import DataStreamWriter

import ha
import ha.spark
from tests.system.spark.conftest import SETTINGS

logging.basicConfig(format="%(asctime)s %(message)s", stream=sys.stderr)
logging.getLogger("ha").setLevel(logging.INFO)
name, source, target = sys.argv[1:]
job = ha.spark.Job(name)
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@job.query(reads=[source])
def words(spark: SparkSession, _: ha.Leadership) -> DataStreamWriter:
    read = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    counted = read.groupBy("value").agg(count("*"))
    return counted.writeStream.outputMode("update").format("noop").trigger(processingTime="500 milliseconds")


@job.query(reads=[source])
def spelt(spark: SparkSession, _: ha.Leadership) -> DataStreamWriter:
    spell = udf(" ".join)
    read = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    return read.select(spell("value")).writeStream.format("noop").trigger(processingTime="500 milliseconds")


@job.query(reads=[source], writes=[target])
def lines(spark: SparkSession, leadership: ha.Leadership) -> DataStreamWriter:
    read = spark.readStream.option("maxFilesPerTrigger", 1).text(source)
    return read.writeStream.foreachBatch(ha.spark.Output(leadership, target, source="text"))


settings = {**SETTINGS, "spark.sql.streaming.stateStore.providerClass": ROCKSDB}
job.run(SparkSession.builder.master("local[2]").config(map=dict(settings)).getOrCreate())
