"""A driver whose batches hang once each: interrupted.py JOB FOLDER. See tests/system/spark/test_interrupted.py."""

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import ha
import ha.spark
from tests.system.spark.conftest import SETTINGS

name, place = sys.argv[1], Path(sys.argv[2])
job = ha.spark.Job(name)
FOREVER = 1000.0


def first_time(what: str) -> bool:
    """Whether this is asked for the first time, by whichever process."""
    try:
        (place / what).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def read(spark: SparkSession, source: str) -> DataFrame:
    """Read the lines of one source."""
    return spark.readStream.text((place / source).as_uri())


@job.query(reads=["slow"], writes=["slow-out"])
def slow(spark: SparkSession, _: ha.Leadership) -> Any:
    """Hang in a Python worker, which Spark can interrupt."""

    @F.udf("string")
    def late(value: str) -> str:
        if first_time("slow hung"):
            time.sleep(FOREVER)
        return value

    def collect(batch: DataFrame, _: int) -> None:
        batch.collect()
        first_time("slow done")

    return read(spark, "slow").select(late("value")).writeStream.foreachBatch(collect)


@job.query(reads=["stuck"], writes=["stuck-out"])
def stuck(spark: SparkSession, _: ha.Leadership) -> Any:
    """Hang in the driver, where nothing can interrupt it."""

    def wait(_: DataFrame, __: int) -> None:
        if first_time("stuck hung"):
            time.sleep(FOREVER)
        first_time("stuck done")

    return read(spark, "stuck").writeStream.foreachBatch(wait)


job.run(SparkSession.builder.master("local[2]").config(map=dict(SETTINGS)).getOrCreate())
