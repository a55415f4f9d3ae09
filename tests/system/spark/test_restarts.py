"""A slice of the restarts from every batch: ``python -m tests.system.checkpoints.restarts`` is the whole."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.system.checkpoints.restarts import tried

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]


def test_spark_goes_on_from_each_restorable_batch_and_from_no_other(spark: SparkSession, tmp_path: Path) -> None:
    found = tried(spark, tmp_path, "counts", "hdfs", 2, holes=False)
    assert found.wrong == []
    assert found.restorable == 2
    assert found.refused >= 1
