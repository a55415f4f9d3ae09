"""A driver on a cluster, with executors of one core, two at most: on_cluster.py MASTER JOB INPUT OUTPUT."""

import sys

from pyspark.sql import SparkSession

import ha.spark
from tests.system.spark.conftest import SETTINGS

master, job, source, target = sys.argv[1:]
settings = {
    **SETTINGS,
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
}
spark = SparkSession.builder.master(master).config(map=dict(settings)).getOrCreate()
with ha.spark.lead(job, spark) as leadership:
    # Each batch shuffles, so an executor that ends takes with it what others need.
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source).repartition(2)
    output = ha.spark.Output(leadership, target, source="text")
    lines.writeStream.queryName("lines").foreachBatch(output).start().awaitTermination()
