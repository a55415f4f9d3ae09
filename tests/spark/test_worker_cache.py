"""How long a worker keeps an answer: with fakes for the client and for ZooKeeper, and no time passing by itself."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ha.client import Client
from ha.spark import kept as module
from ha.spark import lookups
from ha.spark.kept import Kept
from ha.spark.lookups import Lookups
from leader.answers import Answer
from leader.retrieval import Source
from store.errors import NotSent
from store.zookeeper import Connection, Event, Exists, Kind

AUDIT = 30.0


class FakeZooKeeper:
    """One that can be disconnected."""

    def __init__(self) -> None:
        self.state = Connection.CONNECTED
        self.watches: set[Callable[[Event], None]] = set()
        self.listeners: list[Callable[[Connection], None]] = []
        self.heard = 0

    def add_listener(self, listener: Callable[[Connection], None]) -> None:
        self.listeners.append(listener)

    def answered(self) -> None:
        self.heard += 1

    def call(self, operation: Exists, timeout: float) -> None:
        assert timeout <= 0.5
        if self.state is not Connection.CONNECTED:
            raise NotSent("away")
        assert operation.watch is not None
        self.watches.add(operation.watch)

    def change(self) -> None:
        watches, self.watches = self.watches, set()
        for watch in watches:
            watch(Event(Kind.CHANGED, "/x"))

    def become(self, state: Connection) -> None:
        self.state = state
        for listener in self.listeners:
            listener(state)


class Asked:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self, timeout: float) -> int:
        assert timeout == 2.0
        self.times += 1
        self.meanwhile()
        return self.times


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    time = SimpleNamespace(at=1000.0)
    monkeypatch.setattr(module, "now", lambda: time.at)
    return time


def _new(_: int) -> float:
    return 0.0


def keep(
    zookeeper: FakeZooKeeper | None, asked: Callable[[float], int], age: Callable[[int], float] = _new
) -> Kept[int]:
    return Kept(cast("Client", client_of(zookeeper)), "/x", asked, age)


def client_of(zookeeper: FakeZooKeeper | None, **others: Any) -> Any:
    reader = SimpleNamespace(sources=zookeeper)
    settings = SimpleNamespace(audit=AUDIT)
    return SimpleNamespace(_stores=SimpleNamespace(zookeeper=zookeeper), _reader=reader, settings=settings, **others)


def test_a_watched_answer_is_kept_for_a_tenth_of_the_audit_interval(clock: SimpleNamespace) -> None:
    asked = Asked()
    kept = keep(FakeZooKeeper(), asked)
    assert [kept.get(2.0) for _ in range(100)] == [1] * 100
    clock.at += AUDIT / 10 - 0.01
    assert kept.get(2.0) == 1
    clock.at += 0.02
    assert kept.get(2.0) == 2


def test_a_change_is_asked_for_at_once_and_only_once(clock: SimpleNamespace) -> None:
    del clock
    zookeeper, asked = FakeZooKeeper(), Asked()
    kept = keep(zookeeper, asked)
    assert kept.get(2.0) == 1
    zookeeper.change()
    assert [kept.get(2.0), kept.get(2.0)] == [2, 2]
    zookeeper.change()
    assert [kept.get(2.0), kept.get(2.0)] == [3, 3]


def test_an_answer_that_changed_while_it_was_asked_for_is_not_kept(clock: SimpleNamespace) -> None:
    del clock
    zookeeper, asked = FakeZooKeeper(), Asked()
    kept = keep(zookeeper, asked)
    asked.meanwhile = zookeeper.change
    assert [kept.get(2.0), kept.get(2.0)] == [1, 2]
    asked.meanwhile = lambda: None
    assert [kept.get(2.0), kept.get(2.0)] == [3, 3]


@pytest.mark.parametrize("state", [Connection.SUSPENDED, Connection.LOST, Connection.READ_ONLY])
def test_without_a_connection_an_answer_is_kept_for_a_second(clock: SimpleNamespace, state: Connection) -> None:
    zookeeper, asked = FakeZooKeeper(), Asked()
    kept = keep(zookeeper, asked)
    assert kept.get(2.0) == 1
    zookeeper.become(state)
    assert [kept.get(2.0), kept.get(2.0)] == [2, 2]
    clock.at += 0.99
    assert kept.get(2.0) == 2
    clock.at += 0.02
    assert kept.get(2.0) == 3
    zookeeper.become(Connection.CONNECTED)
    assert [kept.get(2.0), kept.get(2.0)] == [4, 4]


def test_without_zookeeper_an_answer_is_kept_for_a_second(clock: SimpleNamespace) -> None:
    kept = keep(None, Asked())
    assert [kept.get(2.0), kept.get(2.0)] == [1, 1]
    clock.at += 1.01
    assert kept.get(2.0) == 2


def test_what_was_only_remembered_is_not_kept_although_there_is_a_watch(clock: SimpleNamespace) -> None:
    """ZooKeeper can set the watch and then be too slow for the question: nothing more may change, and nobody asks."""
    ages = iter((0.7, 0.0))
    asked = Asked()
    kept = keep(FakeZooKeeper(), asked, lambda _: next(ages))
    assert [kept.get(2.0), kept.get(2.0)] == [1, 1]
    clock.at += 1.01
    assert kept.get(2.0) == 2
    clock.at += AUDIT / 10 - 0.01
    assert kept.get(2.0) == 2


def test_the_same_as_before_was_only_remembered(clock: SimpleNamespace) -> None:
    """What a store says is made anew each time."""
    same = 1_000_000
    asked: list[float] = []

    def ask(timeout: float) -> int:
        asked.append(timeout)
        return same

    kept = keep(FakeZooKeeper(), ask)
    for number in (1, 2, 3):
        assert kept.get(2.0) is same
        assert len(asked) == number
        clock.at += AUDIT / 10 + 0.01 if number == 1 else 1.01


def test_a_watch_that_was_set_shows_that_zookeeper_answers(clock: SimpleNamespace) -> None:
    del clock
    zookeeper = FakeZooKeeper()
    keep(zookeeper, Asked()).get(2.0)
    assert zookeeper.heard == 1
    zookeeper.become(Connection.SUSPENDED)
    keep(zookeeper, Asked()).get(2.0)
    assert zookeeper.heard == 1


def test_an_error_is_not_kept(clock: SimpleNamespace) -> None:
    del clock
    asked = Asked()
    kept = keep(FakeZooKeeper(), asked)

    def fail() -> None:
        raise OSError("both are down")

    asked.meanwhile = fail
    with pytest.raises(OSError, match="both are down"):
        kept.get(2.0)
    asked.meanwhile = lambda: None
    assert [kept.get(2.0), kept.get(2.0)] == [2, 2]


def test_stores_have_their_time_also_if_imports_have_taken_long(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where hundreds of workers start on one host, kazoo's import takes seconds, and no store is to blame for them."""
    monkeypatch.setattr(lookups, "now", lambda: clock.at)
    zookeeper, given = FakeZooKeeper(), []

    def start() -> None:
        clock.at += 5.0

    def leader(job: str, timeout: float) -> Answer:
        given.append((job, timeout))
        return Answer(job, 1, "x", {}, Source.ZOOKEEPER, 0.0, verified=True)

    vars(zookeeper).update(start=start, wait=lambda timeout: timeout)
    looked_up = Lookups((("files", "file:///x"),))
    looked_up.client.close()
    looked_up.client = client_of(zookeeper, told=lambda *_: None, leader=leader)
    assert looked_up.leader("orders").epoch == 1
    [(job, timeout)] = given
    assert job == "orders"
    assert 1.0 < timeout <= lookups.TIMEOUT
