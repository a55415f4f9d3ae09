"""The publisher without Spark: a real leadership over a local directory, and a session that only takes listeners."""

import json
import logging
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from ha.config.stores import Stores
from ha.leadership import standalone as contended
from ha.leadership.leadership import Leadership
from ha.spark import checkpoint_location, publish_checkpoints
from ha.spark.queries import checkpoint_publisher as driver
from ha.spark.stored.commit_log import newest_commit
from leader.errors import InvalidName, Unreadable
from leader.layout.checkpoint import Checkpoint, Metadata
from leader.layout.names import SPARK
from store.errors import DeadlineExceeded
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import eventually, fence, leading
from tests.unit.ha.spark.stored.test_locations import metadata


class Streams:
    """Takes listeners, as ``spark.streams`` does."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.active: list[Any] = []

    def addListener(self, listener: Any) -> None:  # noqa: N802
        self.listeners.append(listener)

    def removeListener(self, listener: Any) -> None:  # noqa: N802
        self.listeners.remove(listener)

    def progress(self, query: str | None, batch: int = 0, **others: Any) -> None:
        text = json.dumps({"name": query, "batchId": batch, **others})
        for listener in self.listeners:
            listener.onQueryProgress(SimpleNamespace(progress=lambda: SimpleNamespace(json=lambda: text)))


@pytest.fixture
def streams() -> Streams:
    return Streams()


@pytest.fixture
def session(streams: Streams) -> SparkSession:
    return cast("SparkSession", SimpleNamespace(streams=streams))


def commit(leadership: Leadership, query: str, batch: int) -> None:
    log = Path(leadership.path(f"{SPARK}/{query}/commits").removeprefix("file://"))
    log.mkdir(parents=True, exist_ok=True)
    (log / f".{batch}.crc").touch()
    (log / f".{batch}.0c6e.tmp").touch()
    (log / str(batch)).touch()


def published(leadership: Leadership) -> dict[str, int]:
    return leadership.checkpoints.state().queries


def test_what_an_earlier_driver_completed_is_published_first(session: SparkSession, leadership: Leadership) -> None:
    for batch in (8, 9, 10):
        commit(leadership, "clicks", batch)
    commit(leadership, "0aa3a1f0-9a3e-4e57-8a10-b6a9ad4b8d4f", 4)  # of a query without a name, which Spark starts anew
    commit(leadership, "views", 3)
    with publish_checkpoints(session, leadership):
        eventually(lambda: published(leadership) == {"clicks": 10, "views": 3})


SAID = {
    "batchDuration": 850,
    "numInputRows": 7,
    "stateOperators": [{"numRowsTotal": 3, "memoryUsedBytes": 10}, {"numRowsTotal": 4, "memoryUsedBytes": 20}],
    "sources": [{"endOffset": {"orders": {"0": 5, "1": 7}}}, {"endOffset": 9}],
}
KNOWN = Metadata(850, 7, 7, 30, "orders=12 9")


def test_what_was_said_of_another_batch_is_not(session: SparkSession, streams: Streams, leadership: Leadership) -> None:
    with publish_checkpoints(session, leadership):
        commit(leadership, "clicks", 3)
        streams.progress("clicks", 2, **SAID)
        eventually(lambda: leadership.checkpoints.latest("clicks") == Checkpoint("clicks", 3, 1))
        streams.progress("clicks", 3, **SAID)  # which comes after its commit
        eventually(lambda: leadership.checkpoints.latest("clicks") == Checkpoint("clicks", 3, 1, KNOWN))


def test_a_batch_costs_the_namenode_three_requests(
    session: SparkSession, streams: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these calls is one request: ``test_retained.py`` and ``test_counting.py``."""
    asked: list[str] = []
    monkeypatch.setattr(contended, "Stores", partial(Stores, on_call=lambda name, _: asked.append(name)))
    with (
        leading("orders", (tmp_path / "jobs").as_uri(), checkpoints_retained=2) as leadership,
        publish_checkpoints(session, leadership) as publisher,
    ):
        for batch in range(3):  # from then on the oldest one is replaced
            commit(leadership, "clicks", batch)
            streams.progress("clicks", batch, **SAID)
            eventually(lambda batch=batch: leadership.checkpoints.latest("clicks") == said_of(batch))  # type: ignore[misc]
        asked.clear()
        for number in range(1, 7):
            commit(leadership, "clicks", 2 + number)
            streams.progress("clicks", 2 + number, **SAID)
            eventually(lambda number=number: asked.count("checkpoint") >= 2 * number)  # type: ignore[misc]
        publisher.stop()
        found = Counter(asked)
    assert (found["own_list"], found["checkpoint"], found["checkpoints"]) == (6, 12, 0)


def said_of(batch: int) -> Checkpoint:
    """Return the checkpoint of a query's batch, if each batch took one id and there are no other queries."""
    return Checkpoint("clicks", batch, batch + 1, KNOWN)


def test_a_name_that_cannot_be_read_fails_the_start(session: SparkSession, leadership: Leadership) -> None:
    """A driver that would begin from an older checkpoint than the newest one must not begin at all."""
    stray = f"{leadership.directory}/checkpoints".removeprefix("file://")
    Path(stray, "clicks=9").mkdir()
    with pytest.raises(Unreadable, match="'clicks=9' among the checkpoints of job 'orders' cannot be read"):
        publish_checkpoints(session, leadership)


def test_closing_publishes_the_last_one(session: SparkSession, streams: Streams, leadership: Leadership) -> None:
    publisher = publish_checkpoints(session, leadership)
    commit(leadership, "clicks", 4)  # and its event never comes
    publisher.close()
    publisher.close()
    assert published(leadership) == {"clicks": 4}
    assert not streams.listeners


def test_what_no_event_tells_is_published_nevertheless(
    session: SparkSession, leadership: Leadership, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark may have lost the listener."""
    monkeypatch.setattr(driver, "SILENT_S", 0.05)
    with publish_checkpoints(session, leadership):
        commit(leadership, "clicks", 4)
        eventually(lambda: published(leadership) == {"clicks": 4})
        commit(leadership, "clicks", 5)
        eventually(lambda: published(leadership) == {"clicks": 5})
    assert caplog.text.count("Spark tells of no batch any more: checkpoints are published every 0 s.") == 1


def test_the_listener_never_waits_for_the_store(
    session: SparkSession, streams: Streams, leadership: Leadership, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, asked = threading.Event(), threading.Event(), []

    def slow(relative: str) -> list[str]:
        asked.append(relative)
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return ["7"] if relative.endswith("commits") else []

    monkeypatch.setattr(leadership, "names", slow)
    with publish_checkpoints(session, leadership):
        assert begun.wait(PATIENCE_S)
        for _ in range(10_000):
            streams.progress("clicks")
        go_on.set()
        eventually(lambda: published(leadership) == {"clicks": 7})
    assert asked.count("spark/clicks/commits") <= 3  # ten thousand events are one piece of work


def test_the_queue_is_bounded(
    session: SparkSession,
    streams: Streams,
    leadership: Leadership,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(driver, "MAX_WAITING", 3)
    begun, go_on = threading.Event(), threading.Event()
    names = leadership.names

    def slow(relative: str) -> list[str]:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return names(relative)

    monkeypatch.setattr(leadership, "names", slow)
    publisher = publish_checkpoints(session, leadership)
    assert begun.wait(PATIENCE_S)
    for number in range(10):
        streams.progress(f"query-{number}")
    assert len(publisher._waiting) == 3
    assert "More than 3 queries wait" in caplog.text
    go_on.set()
    publisher.close()


def test_a_store_that_does_not_answer_is_asked_again(
    session: SparkSession, leadership: Leadership, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver, "RETRY_S", 0.01)
    names, failures = leadership.names, iter(range(3))

    def failing(relative: str) -> list[str]:
        if next(failures, None) is not None:
            raise DeadlineExceeded("no answer")
        return names(relative)

    monkeypatch.setattr(leadership, "names", failing)
    commit(leadership, "clicks", 4)
    with publish_checkpoints(session, leadership):
        eventually(lambda: published(leadership) == {"clicks": 4})
    assert "is published later: no answer" in caplog.text


def test_a_fenced_driver_stops_with_one_sentence(
    session: SparkSession, streams: Streams, leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ha")
    publisher = publish_checkpoints(session, leadership)
    commit(leadership, "clicks", 1)
    streams.progress("clicks")
    eventually(lambda: published(leadership) == {"clicks": 1})
    fence(leadership)
    streams.progress("clicks")
    eventually(lambda: not publisher._thread.is_alive())
    streams.progress("clicks")
    publisher.close()
    said = [record.getMessage() for record in caplog.records if "publishing of checkpoints ends" in record.getMessage()]
    assert len(said) == 1
    assert "another leader has taken" in said[0]


def test_it_ends_with_the_leadership(session: SparkSession, tmp_path: Path) -> None:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        publisher = publish_checkpoints(session, leadership)
        assert publisher._thread.is_alive()
    eventually(lambda: not publisher._thread.is_alive())


def test_a_query_without_a_name_is_said_once(
    session: SparkSession, streams: Streams, leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    with publish_checkpoints(session, leadership):
        streams.progress(None)
        streams.progress(None)
    assert caplog.text.count("set queryName") == 1


def test_a_query_that_has_its_checkpoint_elsewhere_is_said_once(
    session: SparkSession, streams: Streams, leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    with publish_checkpoints(session, leadership) as publisher:
        streams.progress("elsewhere")
        streams.progress("two words")
        publisher.close()
    assert caplog.text.count("set its checkpointLocation") == 1
    assert caplog.text.count("'two words' cannot be the name of a query") == 1


def test_a_batch_that_is_completed_during_a_look_is_not_missed_in_it(
    session: SparkSession,
    streams: Streams,
    leadership: Leadership,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by CI: the list was older than a later event of Spark, so the log wrongly named a checkpoint elsewhere."""
    looked = list[int | None]()

    def look(leadership: Leadership, query: str) -> int | None:
        looked.append(newest_commit(leadership, query))
        if len(looked) in (1, 2):
            commit(leadership, query, len(looked))
            streams.progress(query, len(looked), numInputRows=len(looked))
        return looked[-1]

    monkeypatch.setattr("ha.spark.queries.checkpoint_publisher.newest_commit", look)
    with publish_checkpoints(session, leadership) as publisher:
        publisher.completed("clicks")
        eventually(lambda: published(leadership) == {"clicks": 2})
    assert looked[:3] == [None, 1, 2]
    assert "set its checkpointLocation" not in caplog.text
    assert [(each.batch, each.metadata.rows) for each in leadership.checkpoints.retained("clicks")] == [(1, 1), (2, 2)]


def test_a_query_whose_name_is_too_long_does_not_hold_up_the_others(
    session: SparkSession, streams: Streams, leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    long = "q" + "_" * 100  # each of these takes three bytes
    with publish_checkpoints(session, leadership):
        for batch in range(2):
            for query in (long, "clicks"):
                commit(leadership, query, batch)
                streams.progress(query, batch)
            eventually(lambda batch=batch: published(leadership) == {"clicks": batch})  # type: ignore[misc]
    assert caplog.text.count(f"The name of query '{long}' is too long") == 1


def test_names_below_the_leader_directory(leadership: Leadership) -> None:
    assert leadership.names("spark") == []
    assert leadership.names("spark/not-there") == []
    with pytest.raises(InvalidName):
        leadership.names("../other")


@pytest.mark.parametrize("query", ["", ".", "..", "a/b", "a b", "a:b", "a%b", "_a", "x" * 129])
def test_names_that_a_query_cannot_have(leadership: Leadership, query: str) -> None:
    with pytest.raises(InvalidName):
        checkpoint_location(leadership, query)


def test_where_a_query_has_its_checkpoint(leadership: Leadership) -> None:
    assert checkpoint_location(leadership, "word_count-1.0") == f"{leadership.directory}/spark/word_count-1.0"


def test_what_the_trash_gives_back_follows_too(leadership: Leadership) -> None:
    """It was there before, in an earlier leader's directory, and this leadership has asked for the place already."""
    elsewhere, here = "file:/jobs/orders/0000000001-a/spark/clicks", checkpoint_location(leadership, "clicks")
    noted = Path(here.removeprefix("file://"), "state/0/_metadata/v2/0")
    noted.parent.mkdir(parents=True)
    noted.write_bytes(metadata(elsewhere))
    leadership.queries.discard("clicks")
    assert checkpoint_location(leadership, "clicks") == here
    leadership.queries.restore("clicks")
    assert checkpoint_location(leadership, "clicks") == here
    assert noted.read_bytes() == metadata(here)
