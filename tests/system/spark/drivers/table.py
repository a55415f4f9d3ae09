"""A driver that adds partitions to a table of a real metastore: table.py JOB INPUT OUTPUT THRIFT-URI kill|raise.

The first time that a partition is to be added, the driver is killed before it is, or an error is raised after it was.
At its begin and at the end of the input it prints the rows of the table.
"""

import json
import os
import signal
import sys

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import ha.spark
from ha.outputs.partition_commit import METASTORE, CommittedPartition
from ha.spark.outputs import output as module
from tests.system.spark.conftest import SETTINGS

job, source, target, server, fault = sys.argv[1:]
add = module.add_partition
added: list[str] = []


def add_with_fault(spark: SparkSession, table: str, partition: CommittedPartition) -> None:
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    add(spark, table, partition)
    added.append(partition.path)
    if len(added) == 1:
        raise RuntimeError("The answer of the metastore is lost.")


def tell() -> None:
    found = sorted((row.day, row.batch, row.text) for row in spark.table("orders").collect())
    print(json.dumps(found), flush=True)  # noqa: T201  # the test reads it


module.add_partition = add_with_fault
settings = {**SETTINGS, "spark.hadoop.hive.metastore.uris": server, "spark.sql.catalogImplementation": "hive"}
spark = SparkSession.builder.master("local[1]").config(map=dict(settings)).getOrCreate()
spark.sql(
    "CREATE TABLE IF NOT EXISTS orders (text STRING, day STRING, batch BIGINT) USING parquet "
    f"PARTITIONED BY (day, batch) LOCATION '{target}'"
)
tell()
commit = ha.spark.PartitionCommit(policy=[METASTORE, "success-file"], table="orders")
lines = spark.readStream.schema("text string, day string").option("maxFilesPerTrigger", 1).json(source)
with ha.spark.lead(job, spark) as leadership:
    for last in (False, True):
        with ha.spark.Output(leadership, target, source="parquet", partition_by=["day"], commit=commit) as output:
            query = lines.writeStream.queryName("orders").trigger(availableNow=True).foreachBatch(output).start()
            try:
                query.awaitTermination()
            except StreamingQueryException:
                if last:
                    raise
tell()
print(json.dumps(added), flush=True)  # noqa: T201
