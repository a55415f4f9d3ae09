"""CachedAnswer with a fake ZooKeeper and a clock that the test sets: how long an answer is kept."""

import random
from collections.abc import Callable
from typing import cast

import pytest

from leader.lookup.cached_answer import CachedAnswer
from leader.lookup.rate_limit import Jitter
from leader.lookup.store_clients import Fallback, LookupContext, StoreClients
from store.bounded import BoundedFiles
from store.errors import DeadlineExceeded, NotSent
from store.zookeeper import Connection, Event, Exists, Get, Kind
from tests.unit.leader.grants import QUICK, PlayedZooKeeper
from tests.unit.leader.lookup.ticking import Hand

AUDIT = 30.0


class FakeZooKeeper(PlayedZooKeeper):
    def __init__(self) -> None:
        self.watches: set[Callable[[Event], None]] = set()
        self.listeners: list[Callable[[Connection], None]] = []
        self.reads = 0

    def add_listener(self, listener: Callable[[Connection], None]) -> None:
        self.listeners.append(listener)

    def call(self, operation: Exists | Get, timeout: float) -> None:
        if isinstance(operation, Get):
            self.reads += 1
            raise DeadlineExceeded("It can set watches, and reads nothing.")
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
    def __init__(self) -> None:
        self.times = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self, timeout: float) -> int:
        assert timeout == 2.0
        self.times += 1
        self.meanwhile()
        return self.times


@pytest.fixture
def clock() -> Hand:
    return Hand()


def stores_of(zookeeper: FakeZooKeeper | None, clock: Hand) -> StoreClients:
    context = LookupContext(QUICK, AUDIT, clock, Jitter(random.Random(7)))  # noqa: S311
    return StoreClients(context, cast(BoundedFiles, None), zookeeper.client if zookeeper is not None else None)


def caching(
    zookeeper: FakeZooKeeper | None,
    asked: Callable[[float], int],
    clock: Hand,
    age: Callable[[int], float] = lambda _: 0.0,
) -> CachedAnswer[int]:
    return CachedAnswer(stores_of(zookeeper, clock), "/x", asked, audit=AUDIT, age=age, clock=clock)


def test_a_watched_answer_is_cached_for_a_tenth_of_the_audit_interval(clock: Hand) -> None:
    asked = Asked()
    cached = caching(FakeZooKeeper(), asked, clock)
    assert [cached.get(2.0) for _ in range(100)] == [1] * 100
    clock.at += AUDIT / 10 - 0.01
    assert cached.get(2.0) == 1
    clock.at += 0.02
    assert cached.get(2.0) == 2


def test_a_change_is_asked_for_at_once_and_only_once(clock: Hand) -> None:
    zookeeper, asked = FakeZooKeeper(), Asked()
    cached = caching(zookeeper, asked, clock)
    assert cached.get(2.0) == 1
    zookeeper.change()
    assert [cached.get(2.0), cached.get(2.0)] == [2, 2]
    zookeeper.change()
    assert [cached.get(2.0), cached.get(2.0)] == [3, 3]


def test_an_answer_that_changed_while_it_was_asked_for_is_not_cached(clock: Hand) -> None:
    zookeeper, asked = FakeZooKeeper(), Asked()
    cached = caching(zookeeper, asked, clock)
    asked.meanwhile = zookeeper.change
    assert [cached.get(2.0), cached.get(2.0)] == [1, 2]
    asked.meanwhile = lambda: None
    assert [cached.get(2.0), cached.get(2.0)] == [3, 3]


@pytest.mark.parametrize("state", [Connection.SUSPENDED, Connection.LOST, Connection.READ_ONLY])
def test_without_a_connection_an_answer_is_cached_for_a_second(clock: Hand, state: Connection) -> None:
    zookeeper, asked = FakeZooKeeper(), Asked()
    cached = caching(zookeeper, asked, clock)
    assert cached.get(2.0) == 1
    zookeeper.become(state)
    assert [cached.get(2.0), cached.get(2.0)] == [2, 2]
    clock.at += 0.99
    assert cached.get(2.0) == 2
    clock.at += 0.02
    assert cached.get(2.0) == 3
    zookeeper.become(Connection.CONNECTED)
    assert [cached.get(2.0), cached.get(2.0)] == [4, 4]


def test_without_zookeeper_an_answer_is_cached_for_a_second(clock: Hand) -> None:
    cached = caching(None, Asked(), clock)
    assert [cached.get(2.0), cached.get(2.0)] == [1, 1]
    clock.at += 1.01
    assert cached.get(2.0) == 2


def test_a_remembered_answer_is_not_cached_although_there_is_a_watch(clock: Hand) -> None:
    """ZooKeeper can set the watch and then answer too late. If nothing changed later, nobody would ask again."""
    ages = iter((0.7, 0.0))
    asked = Asked()
    cached = caching(FakeZooKeeper(), asked, clock, lambda _: next(ages))
    assert [cached.get(2.0), cached.get(2.0)] == [1, 1]
    clock.at += 1.01
    assert cached.get(2.0) == 2
    clock.at += AUDIT / 10 - 0.01
    assert cached.get(2.0) == 2


def test_an_unchanged_object_counts_as_remembered(clock: Hand) -> None:
    """A store's answer is a new object each time."""
    same = 1_000_000
    asked: list[float] = []

    def ask(timeout: float) -> int:
        asked.append(timeout)
        return same

    cached = caching(FakeZooKeeper(), ask, clock)
    for number in (1, 2, 3):
        assert cached.get(2.0) is same
        assert len(asked) == number
        clock.at += AUDIT / 10 + 0.01 if number == 1 else 1.01


def test_a_watch_that_was_set_shows_that_zookeeper_answers(clock: Hand) -> None:
    """It is asked again although it was silent a moment ago."""
    zookeeper = FakeZooKeeper()
    stores = stores_of(zookeeper, clock)
    cached = CachedAnswer(stores, "/x", Asked(), audit=AUDIT, clock=clock)

    def reads() -> int:
        assert isinstance(stores.read_zookeeper("orders", 2.0, None), Fallback)
        return zookeeper.reads

    assert [reads(), reads()] == [1, 1]
    cached.get(2.0)
    assert [reads(), reads()] == [2, 2]
    zookeeper.become(Connection.SUSPENDED)
    cached.get(2.0)
    assert reads() == 2


def test_an_error_is_not_cached(clock: Hand) -> None:
    asked = Asked()
    cached = caching(FakeZooKeeper(), asked, clock)

    def fail() -> None:
        raise OSError("both are down")

    asked.meanwhile = fail
    with pytest.raises(OSError, match="both are down"):
        cached.get(2.0)
    asked.meanwhile = lambda: None
    assert [cached.get(2.0), cached.get(2.0)] == [2, 2]
