"""The sidecar's publisher, which polls: a real leadership over a local directory, with commits that the test writes."""

import logging
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ha.config.stores import Stores
from ha.leadership import standalone as contended
from ha.leadership.leadership import Leadership
from ha.spark.queries import checkpoint_publisher
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from leader.errors import Fenced, Unreadable
from leader.layout.checkpoint import Checkpoint, Metadata
from leader.layout.names import SPARK
from store.errors import DeadlineExceeded
from tests.system.spark.helpers import eventually, fence, leading


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the store calls; each of those that the tests check is one request."""
    names: list[str] = []
    monkeypatch.setattr(contended, "Stores", partial(Stores, on_call=lambda name, _: names.append(name)))
    return names


@pytest.fixture
def leadership(asked: list[str], tmp_path: Path) -> Iterator[Leadership]:
    assert not asked
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        yield leadership


def commit(leadership: Leadership, query: str, *batches: int) -> None:
    log = Path(leadership.path(f"{SPARK}/{query}/commits").removeprefix("file://"))
    log.mkdir(parents=True, exist_ok=True)
    for batch in batches:
        (log / f".{batch}.0c6e.tmp").touch()
        (log / str(batch)).touch()


def published(leadership: Leadership) -> dict[str, int]:
    return leadership.checkpoints.state().queries


def test_the_newest_batch_of_each_query_is_published_once(leadership: Leadership) -> None:
    publisher = CheckpointPublisher(leadership, poll=True)
    assert not publisher.look()
    commit(leadership, "clicks", 0, 1, 10, 9)
    commit(leadership, "views", 3)
    assert publisher.look()
    assert published(leadership) == {"clicks": 10, "views": 3}
    assert not publisher.look()
    commit(leadership, "views", 4)
    assert publisher.look()
    assert published(leadership) == {"clicks": 10, "views": 4}
    assert leadership.checkpoints.retained("clicks") == [Checkpoint("clicks", 10, 1)]
    assert leadership.checkpoints.retained("views") == [Checkpoint("views", 3, 2), Checkpoint("views", 4, 3)]


def test_each_look_tells_metrics_the_newest_batch_and_asks_no_more(leadership: Leadership, asked: list[str]) -> None:
    told: list[tuple[str, int]] = []
    publisher = CheckpointPublisher(leadership, poll=True, committed=lambda query, batch: told.append((query, batch)))
    commit(leadership, "clicks", 0, 1)
    publisher.look()
    before = Counter(asked)
    publisher.look()
    assert told == [("clicks", 1)] * 2
    assert Counter(asked) - before == {"own_list": 2}


def test_a_query_without_a_name_is_not_published(leadership: Leadership) -> None:
    """Spark names its checkpoint anew at each start. Nobody could ask for it, and their number would grow for ever."""
    commit(leadership, str(uuid.uuid4()), 0)
    commit(leadership, "clicks", 0)
    CheckpointPublisher(leadership, poll=True).look()
    assert published(leadership) == {"clicks": 0}


def test_a_poll_is_two_requests_and_a_batch_two_more(leadership: Leadership, asked: list[str]) -> None:
    publisher = CheckpointPublisher(leadership, poll=True)
    commit(leadership, "clicks", 0)
    assert publisher.look()
    commit(leadership, "clicks", 1)
    assert publisher.look(), "the first new batch: the names of operators are looked at once more"
    asked.clear()
    assert not publisher.look()
    nothing = Counter(asked)
    commit(leadership, "clicks", 2)
    asked.clear()
    assert publisher.look()
    assert (nothing["own_list"], nothing["checkpoint"], nothing["checkpoints"]) == (2, 0, 0)
    assert (asked.count("own_list"), asked.count("checkpoint"), asked.count("checkpoints")) == (2, 2, 0)


def test_a_query_that_cannot_be_published_does_not_hold_up_the_others(
    leadership: Leadership, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leader.job.checkpoints.MOST_QUERIES", 1)
    commit(leadership, "clicks", 0)
    publisher = CheckpointPublisher(leadership, poll=True)
    assert publisher.look()
    commit(leadership, "views", 3)
    commit(leadership, "no query", 3)
    commit(leadership, "clicks", 1)
    with caplog.at_level(logging.WARNING, "ha"):
        publisher.look()
        assert not publisher.look()
    assert published(leadership) == {"clicks": 1}
    assert caplog.text.count("those of 'views' are too many") == 1


def test_a_checkpoint_elsewhere_is_logged_once(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    publisher = CheckpointPublisher(leadership, poll=True)
    with caplog.at_level(logging.WARNING, "ha"):
        for _ in range(checkpoint_publisher.PATIENCE - 1):
            publisher.look()
        assert not caplog.text
        for _ in range(2 * checkpoint_publisher.PATIENCE):
            publisher.look()
    assert caplog.text.count("keeps its checkpoint elsewhere, where no takeover fences it") == 1


def test_a_program_with_a_checkpoint_is_not_logged(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    Path(leadership.path(f"{SPARK}/clicks").removeprefix("file://")).mkdir(parents=True)
    publisher = CheckpointPublisher(leadership, poll=True)
    with caplog.at_level(logging.WARNING, "ha"):
        for _ in range(2 * checkpoint_publisher.PATIENCE):
            publisher.look()
    assert not caplog.text


def test_a_failed_publication_is_repeated_by_the_next_poll(
    leadership: Leadership, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise DeadlineExceeded("No answer in time.")

    commit(leadership, "clicks", 5)
    publisher = CheckpointPublisher(leadership, poll=True)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "ha"):
        patched.setattr(leadership.checkpoints, "completed", fails)
        assert not publisher.look()
        assert not publisher.look()
    assert caplog.text.count("published later: No answer in time.") == 1
    assert publisher.look()
    assert published(leadership) == {"clicks": 5}


def test_an_unreadable_checkpoint_and_a_fence_end_the_publisher(leadership: Leadership) -> None:
    commit(leadership, "clicks", 0)
    stray = Path(f"{leadership.directory}/checkpoints/clicks=9".removeprefix("file://"))
    stray.mkdir()
    with pytest.raises(Unreadable):
        CheckpointPublisher(leadership, poll=True).look()
    stray.rmdir()
    fence(leadership)
    with pytest.raises(Fenced):
        CheckpointPublisher(leadership, poll=True).look()


def test_closing_publishes_the_last_completed_batch(leadership: Leadership, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_publisher, "SOONEST_S", 3600.0)
    monkeypatch.setattr(checkpoint_publisher, "LATEST_S", 3600.0)
    commit(leadership, "clicks", 0)
    publisher = CheckpointPublisher(leadership, poll=True)
    publisher.start()
    eventually(lambda: published(leadership) == {"clicks": 0})
    commit(leadership, "clicks", 1)
    publisher.close()
    assert published(leadership) == {"clicks": 1}


def test_closing_tries_again_because_no_poll_follows(
    leadership: Leadership, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint_publisher, "SOONEST_S", 3600.0)
    monkeypatch.setattr(checkpoint_publisher, "LATEST_S", 3600.0)
    monkeypatch.setattr(checkpoint_publisher, "RETRY_S", 0.0)
    completed, tries = leadership.checkpoints.completed, iter(range(3))

    def at_last(query: str, batch: int, metadata: Metadata) -> None:
        if next(tries, None) is not None:
            raise DeadlineExceeded("No answer in time.")
        completed(query, batch, metadata)

    publisher = CheckpointPublisher(leadership, poll=True)
    publisher.start()
    eventually(lambda: publisher._without == 1)
    commit(leadership, "clicks", 0)
    monkeypatch.setattr(leadership.checkpoints, "completed", at_last)
    publisher.close()
    assert published(leadership) == {"clicks": 0}
    assert next(tries, None) is None
    assert "completed last is not published" not in caplog.text


def test_closing_logs_batches_that_it_could_not_publish(
    leadership: Leadership, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoint_publisher, "CLOSE_TIMEOUT_S", 0.0)

    def fails(*_: object) -> None:
        raise DeadlineExceeded("No answer in time.")

    commit(leadership, "clicks", 0)
    monkeypatch.setattr(leadership.checkpoints, "completed", fails)
    publisher = CheckpointPublisher(leadership, poll=True)
    publisher.start()
    publisher.close()
    eventually(lambda: "what it completed last is not published" in caplog.text)


def test_polls_repeat_and_become_rarer(leadership: Leadership, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def wait(pause: float) -> bool:
        pauses.append(pause)
        if len(pauses) == 7:
            commit(leadership, "clicks", 0)
        if len(pauses) == 9:
            publisher.stop()
        return False

    publisher = CheckpointPublisher(leadership, poll=True)
    monkeypatch.setattr(publisher._changed, "wait", wait)
    publisher._run()
    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 1.0, 2.0]
    assert published(leadership) == {"clicks": 0}
