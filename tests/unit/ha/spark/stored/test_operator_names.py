"""Operator names: told and kept once they change, by the batch from which they count."""

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership, SidecarHolder
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from ha.spark.stored.operator_names import MOST_CHANGES, NamesSince, added, kept, names
from leader.contender.runtime import Runtime
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from tests.unit.ha.checkpoints.simulated_spark import HDFS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.led import Led, session
from tests.unit.ha.spark.placing import place


class Job:
    """A job that is led by whoever claims it, on a local directory, with no contender beside it."""

    def __init__(self, root: Path) -> None:
        self._led = Led(root)
        self._stores = Stores(Settings.of(files=root.as_uri()))
        self._runtime = Runtime("a", self._stores.timing, self._stores.files, None)

    def lead(self) -> Leadership:
        epoch = self._led.claim("orders", "a:1")
        directory = LeaderDirectory(epoch, session(epoch))
        return Leadership("orders", directory, self._stores, self._runtime, SidecarHolder("orders", lambda: True))

    def close(self) -> None:
        self._runtime.close()
        self._stores.close()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    made.close()


@pytest.fixture
def leadership(job: Job) -> Leadership:
    return job.lead()


def metadata(name: str) -> bytes:
    stores = [{"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": []}]
    return f"v2\n{json.dumps({'operatorInfo': {'operatorName': name}, 'stateStoreInfo': stores})}".encode()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made, real = list[str](), BoundedFiles.call

    def counted(self: BoundedFiles, name: str, *given: Any, **named: Any) -> Any:
        made.append(name)
        return real(self, name, *given, **named)

    monkeypatch.setattr(BoundedFiles, "call", counted)
    return made


def commit(folder: Path, batch: int) -> None:
    (folder / f"commits/{batch}").write_bytes(b"v1\n{}")


def since(batch: int, name: str = "join", query: str = "b0-b0-b0-b0-b0") -> NamesSince:
    return NamesSince(batch, query, {0: name})


def test_the_newest_metadata_of_each_operator_up_to_the_batch_count(leadership: Leadership) -> None:
    place(leadership, until_batch(HDFS, 1).files)
    place(leadership, {"state/1/_metadata/v2/9": metadata("old"), "state/1/_metadata/v2/10": metadata("new")})
    place(leadership, {"state/2/0/1.delta": b"", "state/2/_metadata/was-3": b""})
    assert names(leadership, "daily", 10) == NamesSince(10, "b0-b0-b0-b0-b0", {0: "join", 1: "new"})
    assert names(leadership, "daily", 9).operators == {0: "join", 1: "old"}
    assert names(leadership, "daily", 8).said == "0 is join"


def test_the_log_tells_of_each_query_once(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ha")
    folder = place(leadership, until_batch(HDFS, 1).files)
    publisher = CheckpointPublisher(leadership)
    assert publisher.look("daily")
    commit(folder, 2)
    assert publisher.look("daily")
    told = [each.getMessage() for each in caplog.records if "operators with state" in each.getMessage()]
    assert told == ["orders: query 'daily' has the id b0-b0-b0-b0-b0; operators with state: 0 is join."]


def test_names_are_written_only_when_they_change(job: Job, leadership: Leadership, asked: list[str]) -> None:
    folder = place(leadership, until_batch(HDFS, 1).files)
    publisher = CheckpointPublisher(leadership)
    publisher.look("daily")
    assert kept(leadership.own) == {"daily": [since(1)]}
    commit(folder, 2)
    publisher.look("daily")
    asked.clear()
    commit(folder, 3)
    publisher.look("daily")
    assert asked.count("own_list") == 1, "the commits; the id and the publication are calls of other names"
    assert "own_read" not in asked
    leadership = job.lead()  # a restart with the same program
    version = leadership.graph._files.versions()["operators"]
    publisher = CheckpointPublisher(leadership)
    publisher.look("daily")
    commit(Path(urlsplit(leadership.path("spark/daily")).path), 4)
    publisher.look("daily")
    assert leadership.graph._files.versions()["operators"] == version
    assert kept(leadership.own) == {"daily": [since(1)]}


def test_a_changed_program_is_kept(job: Job, leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ha")
    place(leadership, until_batch(HDFS, 1).files)
    CheckpointPublisher(leadership).look("daily")
    leadership = job.lead()
    folder = place(leadership, {})
    publisher = CheckpointPublisher(leadership)
    publisher.look("daily")
    place(leadership, {"state/1/_metadata/v2/2": metadata("dedup")})
    commit(folder, 2)
    publisher.look("daily")
    assert kept(leadership.own)["daily"] == [since(1), NamesSince(2, "b0-b0-b0-b0-b0", {0: "join", 1: "dedup"})]
    assert caplog.text.count("operators with state: 0 is join, 1 is dedup.") == 1


def test_of_batches_that_were_taken_back_nothing_stays() -> None:
    assert added([], since(4)) == [since(4)]
    assert added([since(4)], since(4)) == added([since(4)], since(9)) == [since(4)]
    assert added([since(4)], since(9, "sum")) == [since(4), since(9, "sum")]
    assert added([since(4), since(9, "sum")], since(9)) == [since(4)], "put back, and the old program again"
    assert added([since(4), since(9, "sum")], since(9, "dedup")) == [since(4), since(9, "dedup")]
    assert added([since(4)], since(3)) == [since(3)]
    assert added([since(4)], since(5, query="c1-c1-c1-c1-c1")) == [since(4), since(5, query="c1-c1-c1-c1-c1")]
    many = [since(each, str(each)) for each in range(MOST_CHANGES)]
    assert added(many, since(99)) == [*many[1:], since(99)]


def test_the_names_of_other_queries_stay_and_damaged_ones_are_written_anew(leadership: Leadership) -> None:
    place(leadership, until_batch(HDFS, 1).files)
    shutil.copytree(place(leadership, {}), place(leadership, {}).parent / "hourly")
    leadership.graph._files.put("operators", b"no JSON")
    assert kept(leadership.own) == {}
    CheckpointPublisher(leadership).look("daily", "hourly")
    assert kept(leadership.own) == {"daily": [since(1)], "hourly": [since(1)]}


def test_damaged_metadata_do_not_stop_the_publication(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ha")
    place(leadership, {**until_batch(HDFS, 1).files, "state/0/_metadata/metadata": b"nothing"})
    assert CheckpointPublisher(leadership).look("daily")
    assert not [each for each in caplog.records if "operators with state" in each.getMessage()]
