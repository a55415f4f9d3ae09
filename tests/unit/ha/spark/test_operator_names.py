"""Operator names: the log tells once which operator has which number."""

import json
import logging
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_publisher import CheckpointPublisher
from ha.spark.operator_names import operators
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch

pytestmark = pytest.mark.usefixtures("quick")


def place(leadership: Leadership, files: dict[str, bytes]) -> Path:
    folder = Path(urlsplit(leadership.path("spark/daily")).path)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def metadata(name: str) -> bytes:
    stores = [{"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": []}]
    return f"v2\n{json.dumps({'operatorInfo': {'operatorName': name}, 'stateStoreInfo': stores})}".encode()


def test_the_newest_metadata_of_each_operator_count() -> None:
    with ha.lead("orders") as leadership:
        assert operators(leadership, "daily") == {}
        place(leadership, until_batch(HDFS, 1).files)
        place(leadership, {"state/1/_metadata/v2/9": metadata("old"), "state/1/_metadata/v2/10": metadata("new")})
        place(leadership, {"state/2/0/1.delta": b"", "state/2/_metadata/was-3": b""})
        assert operators(leadership, "daily") == {0: "join", 1: "new"}


def test_the_log_tells_of_each_query_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ha")
    with ha.lead("orders") as leadership:
        folder = place(leadership, until_batch(HDFS, 1).files)
        publisher = CheckpointPublisher(leadership)
        assert publisher.look("daily")
        (folder / "commits/2").write_bytes(b"v1\n{}")
        assert publisher.look("daily")
        publisher.stop()
    told = [each.getMessage() for each in caplog.records if "operators with state" in each.getMessage()]
    assert told == ["orders: query 'daily' has the id b0b0; operators with state: 0 is join."]


def test_damaged_metadata_do_not_stop_the_publication(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ha")
    with ha.lead("orders") as leadership:
        place(leadership, {**until_batch(HDFS, 1).files, "state/0/_metadata/metadata": b"nothing"})
        assert CheckpointPublisher(leadership).look("daily")
    assert not [each for each in caplog.records if "operators with state" in each.getMessage()]
