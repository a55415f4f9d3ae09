"""Inspection and stored state, on a real checkpoint: what Spark has written is what they say."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.inspection import Inspection, inspect
from ha.checkpoints.schemas import Field
from ha.checkpoints.trees import Tree
from ha.spark.session.spark_session import configured
from ha.spark.stored.stored_state import choose, rows, session_settings
from leader.errors import InvalidName
from store.open import open_files
from tests.system.spark.test_closures import ALWAYS, FORMATS, batches, sums

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow]

BATCHES = 5


def inspected(checkpoint: Path, batch: int | None = None) -> Inspection:
    with open_files(checkpoint.parent.as_uri()) as files:
        return inspect(CheckpointReader(Tree(files, checkpoint.name)), batch)


def test_the_state_of_a_query_is_told_and_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(BATCHES):
        lines = [{"key": f"k{(number + each) % 4}", "value": each, "at": "2026-01-01T00:00:00Z"} for each in range(6)]
        (tmp_path / "in" / f"{number:03}.json").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    expected = Counter[str]()
    for number in range(BATCHES - 1):
        for each in range(6):
            expected[f"k{(number + each) % 4}"] += each
    with configured(spark, {**ALWAYS, **FORMATS["rocksdb with ids"]}):
        batches(spark, sums, tmp_path, tmp_path / "checkpoint")
    uri = (tmp_path / "checkpoint").as_uri()

    found = inspected(tmp_path / "checkpoint", BATCHES - 2)
    (operator,) = found.operators
    (store,) = operator.stores
    assert (operator.name, found.format, found.partitions) == ("stateStoreSave", "RocksDB with ids", 2)
    assert store.states[0].key == [Field("key", "string")]
    assert store.states[0].value == [Field("sum", "bigint")]
    assert inspected(tmp_path / "checkpoint").watermark_ms > 0

    with configured(spark, session_settings(found)):  # as in a session of its own
        told, more = rows(spark, uri, choose(found, None, None), {}, 10)
        assert {each["key"]["key"]: each["value"]["sum"] for each in told} == expected
        assert not more
        one, more = rows(spark, uri, choose(found, None, None), {"key": "k1"}, 1)
        assert [each["value"]["sum"] for each in one] == [expected["k1"]]
        assert not more
        assert rows(spark, uri, choose(found, None, None), {}, 3)[1], "there are more than three"
        changed, _ = rows(spark, uri, choose(found, None, None, changes=True), {"key": "k1"}, 1)
        assert (changed[0]["batch_id"], changed[0]["change_type"]) == (BATCHES - 2, "update")
        with pytest.raises(InvalidName, match="it has key"):
            rows(spark, uri, choose(found, None, None), {"user": "k1"}, 1)
