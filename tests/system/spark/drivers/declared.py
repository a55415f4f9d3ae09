"""A driver with a declared query: declared.py JOB INPUT OUTPUT HANG. A batch that finds the file HANG hangs."""

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import ha.spark
from tests.system.spark.conftest import SETTINGS

name, source, target, hang = sys.argv[1:]
job = ha.spark.Job(name)


@job.query(name="lines")
def declared(spark: SparkSession, leadership: Any) -> Any:
    """Copy lines."""
    output = ha.spark.Output(leadership, target, source="json")

    def batch(rows: DataFrame, number: int) -> None:
        output(rows, number)
        if Path(hang).exists():
            Path(hang).unlink()
            while True:
                time.sleep(3600)

    return spark.readStream.option("maxFilesPerTrigger", 1).text(source).writeStream.foreachBatch(batch)


job.run(SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate())
