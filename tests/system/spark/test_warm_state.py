"""Rehearsal of a query whose state Python keeps: ``transformWithState``, which PySpark has since 4.1."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, GroupedData, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha.spark
from tests.system.spark.helpers import names
from tests.system.spark.test_warm import QUERY, SAMPLE, root

__all__ = ["root"]

if not hasattr(GroupedData, "transformWithState"):
    pytest.skip("this PySpark has no transformWithState", allow_module_level=True)

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]


class Seen(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._seen = handle.getValueState("seen", "times long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        del timerValues
        known = self._seen.get()
        times = (known[0] if known else 0) + sum(1 for _ in rows)
        self._seen.update((times,))
        yield Row(value=key[0], times=times)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def test_what_is_slowest_the_first_time_can_be_rehearsed(spark: SparkSession, root: str) -> None:
    """RocksDB, a state that Python keeps, and Parquet. In between, the query stops and continues with its state."""
    seen: list[tuple[int, list[int]]] = []

    def start(rehearsal: ha.spark.Rehearsal) -> StreamingQuery:
        output = ha.spark.Output(rehearsal.leadership, rehearsal.output, source="parquet")

        def publish(batch: DataFrame, batch_id: int) -> None:
            assert output.write(batch, batch_id)
            published = spark.read.parquet(f"{rehearsal.output}/batch={batch_id}")
            seen.append((batch_id, [row["times"] for row in published.collect()]))

        lines = spark.readStream.text(rehearsal.input).groupBy("value")
        location = ha.spark.checkpoint_location(rehearsal.leadership, QUERY)
        return (
            lines.transformWithState(Seen(), "value string, times long", "update", "None")
            .writeStream.queryName(QUERY).outputMode("update")
            .option("checkpointLocation", location).foreachBatch(publish).start()
        )  # fmt: skip

    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        assert ha.spark.warm_up(spark, start, SAMPLE)
    finally:
        spark.conf.unset(provider)
    assert seen == [(0, [1]), (1, [2]), (2, [3])]
    assert names(root) == []
