"""A driver without any import of ``ha``: counting.py COLUMN INPUT MARKER. It makes the file if it writes a batch."""

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

column, source, marker = sys.argv[1:]


def write(_: DataFrame, __: int) -> None:
    Path(marker).touch()


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.readStream.schema("user string, item string, value long, at timestamp").json(source)
query = rows.groupBy(column).count().writeStream.outputMode("update").queryName("same")
query.foreachBatch(write).start().awaitTermination()
