"""What a sidecar publishes of a program that does not: a real leadership of a local directory, commits made by hand."""

import logging
import uuid
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ha import contended
from ha.leadership import Leadership
from ha.spark import following
from ha.spark.following import Follower
from ha.stores import Stores
from leader.checkpoint import Checkpoint
from leader.errors import Fenced, Unreadable
from leader.names import SPARK
from store.errors import DeadlineExceeded
from tests.spark.helpers import eventually, fence, leading


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the store calls; each of those that are looked at here is one request."""
    names: list[str] = []
    monkeypatch.setattr(contended, "Stores", partial(Stores, on_call=lambda name, _: names.append(name)))
    return names


@pytest.fixture
def leadership(asked: list[str], tmp_path: Path) -> Iterator[Leadership]:
    assert not asked
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        yield leadership


def commit(leadership: Leadership, query: str, *batches: int) -> None:
    """Complete batches as Spark does."""
    log = Path(leadership.path(f"{SPARK}/{query}/commits").removeprefix("file://"))
    log.mkdir(parents=True, exist_ok=True)
    for batch in batches:
        (log / f".{batch}.0c6e.tmp").touch()
        (log / str(batch)).touch()


def published(leadership: Leadership) -> dict[str, int]:
    return leadership.checkpoints.state().queries


def test_the_newest_batch_of_each_query_is_published_once(leadership: Leadership) -> None:
    follower = Follower(leadership)
    assert not follower.look()
    commit(leadership, "clicks", 0, 1, 10, 9)
    commit(leadership, "views", 3)
    assert follower.look()
    assert published(leadership) == {"clicks": 10, "views": 3}
    assert not follower.look()
    commit(leadership, "views", 4)
    assert follower.look()
    assert published(leadership) == {"clicks": 10, "views": 4}
    assert leadership.checkpoints.retained("clicks") == [Checkpoint("clicks", 10, 1)]
    assert leadership.checkpoints.retained("views") == [Checkpoint("views", 3, 2), Checkpoint("views", 4, 3)]


def test_a_query_without_a_name_is_not_published(leadership: Leadership) -> None:
    """Spark names its checkpoint anew at each start: nobody could ask for it, and there would be ever more of them."""
    commit(leadership, str(uuid.uuid4()), 0)
    commit(leadership, "clicks", 0)
    Follower(leadership).look()
    assert published(leadership) == {"clicks": 0}


def test_a_look_is_two_requests_and_a_batch_two_more(leadership: Leadership, asked: list[str]) -> None:
    follower = Follower(leadership)
    commit(leadership, "clicks", 0)
    assert follower.look()
    asked.clear()
    assert not follower.look()
    nothing = Counter(asked)
    commit(leadership, "clicks", 1)
    asked.clear()
    assert follower.look()
    assert (nothing["own_list"], nothing["checkpoint"], nothing["checkpoints"]) == (2, 0, 0)
    assert (asked.count("own_list"), asked.count("checkpoint"), asked.count("checkpoints")) == (2, 2, 0)


def test_a_query_that_cannot_be_published_does_not_hold_up_the_others(
    leadership: Leadership, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leader.checkpoints.MOST_QUERIES", 1)
    commit(leadership, "clicks", 0)
    follower = Follower(leadership)
    assert follower.look()
    commit(leadership, "views", 3)
    commit(leadership, "no query", 3)
    commit(leadership, "clicks", 1)
    with caplog.at_level(logging.WARNING, "ha"):
        follower.look()
        assert not follower.look()
    assert published(leadership) == {"clicks": 1}
    assert caplog.text.count("those of 'views' are too many") == 1


def test_a_program_that_keeps_its_checkpoints_elsewhere_is_spoken_of_once(
    leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    follower = Follower(leadership)
    with caplog.at_level(logging.WARNING, "ha"):
        for _ in range(following.PATIENCE - 1):
            follower.look()
        assert not caplog.text
        for _ in range(2 * following.PATIENCE):
            follower.look()
    assert caplog.text.count("One that sets its checkpointLocation itself is not fenced") == 1


def test_one_that_has_a_checkpoint_is_not(leadership: Leadership, caplog: pytest.LogCaptureFixture) -> None:
    Path(leadership.path(f"{SPARK}/clicks").removeprefix("file://")).mkdir(parents=True)
    follower = Follower(leadership)
    with caplog.at_level(logging.WARNING, "ha"):
        for _ in range(2 * following.PATIENCE):
            follower.look()
    assert not caplog.text


def test_what_the_store_did_not_take_is_published_by_the_next_look(
    leadership: Leadership, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise DeadlineExceeded("No answer in time.")

    commit(leadership, "clicks", 5)
    follower = Follower(leadership)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "ha"):
        patched.setattr(leadership.checkpoints, "completed", fails)
        assert not follower.look()
        assert not follower.look()
    assert caplog.text.count("published later: No answer in time.") == 1
    assert follower.look()
    assert published(leadership) == {"clicks": 5}


def test_what_cannot_be_read_and_a_fence_end_it(leadership: Leadership) -> None:
    commit(leadership, "clicks", 0)
    stray = Path(f"{leadership.directory}/checkpoints/clicks=9".removeprefix("file://"))
    stray.mkdir()
    with pytest.raises(Unreadable):
        Follower(leadership).look()
    stray.rmdir()
    fence(leadership)
    with pytest.raises(Fenced):
        Follower(leadership).look()


def test_closing_publishes_what_was_completed_last(leadership: Leadership, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "SOONEST", 3600.0)
    monkeypatch.setattr(following, "LATEST", 3600.0)
    commit(leadership, "clicks", 0)
    follower = Follower(leadership)
    follower.start()
    eventually(lambda: published(leadership) == {"clicks": 0})
    commit(leadership, "clicks", 1)
    follower.close()
    assert published(leadership) == {"clicks": 1}


def test_closing_tries_again_for_nobody_comes_after_it(
    leadership: Leadership, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(following, "SOONEST", 3600.0)
    monkeypatch.setattr(following, "LATEST", 3600.0)
    monkeypatch.setattr(following, "RETRY", 0.0)
    completed, tries = leadership.checkpoints.completed, iter(range(3))

    def at_last(query: str, batch: int) -> None:
        if next(tries, None) is not None:
            raise DeadlineExceeded("No answer in time.")
        completed(query, batch)

    follower = Follower(leadership)
    follower.start()
    eventually(lambda: follower._without == 1)
    commit(leadership, "clicks", 0)
    monkeypatch.setattr(leadership.checkpoints, "completed", at_last)
    follower.close()
    assert published(leadership) == {"clicks": 0}
    assert next(tries, None) is None
    assert "completed last is not published" not in caplog.text


def test_closing_says_what_it_could_not_publish(
    leadership: Leadership, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(following, "CLOSE_WITHIN", 0.0)

    def fails(*_: object) -> None:
        raise DeadlineExceeded("No answer in time.")

    commit(leadership, "clicks", 0)
    monkeypatch.setattr(leadership.checkpoints, "completed", fails)
    follower = Follower(leadership)
    follower.start()
    follower.close()
    eventually(lambda: "what it completed last is not published" in caplog.text)


def test_it_looks_again_by_itself_and_less_and_less(leadership: Leadership, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def wait(pause: float) -> bool:
        pauses.append(pause)
        if len(pauses) == 7:
            commit(leadership, "clicks", 0)
        return len(pauses) == 9

    follower = Follower(leadership)
    monkeypatch.setattr(follower._wake, "wait", wait)
    follower._run()
    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 1.0, 2.0]
    assert published(leadership) == {"clicks": 0}
