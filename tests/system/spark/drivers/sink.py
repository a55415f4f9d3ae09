"""A driver without any import of ``ha`` that writes with its format: sink.py INPUT OUTPUT. It ends after batch 2.

The first try of each task fails after its rows: so each batch has files that belong to nobody.
"""

import sys
from collections.abc import Iterator

from pyarrow import RecordBatch
from pyspark import TaskContext
from pyspark.sql import SparkSession

source, target = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2,2]").config("spark.sql.execution.arrow.maxRecordsPerBatch", 1).getOrCreate()
)
lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source)


def fail_once(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    yield from batches
    task = TaskContext.get()
    if task is not None and task.attemptNumber() == 0:
        raise RuntimeError("the first try of a task fails")


flaky = lines.selectExpr("value", "substr(value, 1, 1) part").mapInArrow(fail_once, "value string, part string")
sink = flaky.writeStream.queryName("lines").format("ha").option("path", target).option("format", "text")
query = sink.partitionBy("part").start()
while not query.awaitTermination(1):
    if query.lastProgress and query.lastProgress["batchId"] >= 2:
        query.processAllAvailable()
        query.stop()
