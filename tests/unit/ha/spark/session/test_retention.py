"""Retention: Spark retains at least what is listed."""

from typing import cast

import pytest
from pyspark.sql import SparkSession

from ha.spark.session.retention import MIN_BATCHES, for_retained


class Session:
    def __init__(self, value: str | None) -> None:
        self.conf = self
        self._value = value

    def get(self, name: str, default: str) -> str:
        assert name == MIN_BATCHES
        return default if self._value is None else self._value


@pytest.mark.parametrize(
    ("present", "listed", "told"),
    [(None, 10, None), (None, 99, None), (None, 100, "101"), ("10", 10, "11"), ("11", 10, None), ("2", 1, None)],
)
def test_few_are_raised(present: str | None, listed: int, told: str | None, caplog: pytest.LogCaptureFixture) -> None:
    spark = cast("SparkSession", Session(present))
    assert for_retained(spark, "orders", listed) == ({MIN_BATCHES: told} if told else {})
    assert [f"is set to {told}" in each.message for each in caplog.records] == ([True] if told else [])
