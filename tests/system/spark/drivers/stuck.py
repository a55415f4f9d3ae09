"""A driver whose first batch hangs where nothing can interrupt it: stuck.py JOB FOLDER."""

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import ha
import ha.spark
from tests.system.spark.conftest import SETTINGS

name, place = sys.argv[1], Path(sys.argv[2])
job = ha.spark.Job(name)


@job.query(reads=["in"], writes=["out"])
def lines(spark: SparkSession, _: ha.Leadership) -> Any:
    def wait(_: DataFrame, __: int) -> None:
        time.sleep(1000.0)

    return spark.readStream.text((place / "in").as_uri()).writeStream.foreachBatch(wait)


job.run(SparkSession.builder.master("local[1]").config(map=dict(SETTINGS)).getOrCreate())
