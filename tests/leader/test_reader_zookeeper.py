"""Lookups beside a ZooKeeper that is slow, or silent: when it is asked again."""

import threading
from typing import Any, cast

import pytest
from msgspec.structs import replace

from leader.answers import Look
from leader.information import LeaderInformation, encode
from leader.lease import Mode
from leader.reader import UNANSWERED, Reader
from leader.retrieval import Source
from leader.sources import Fallback
from store.clock import now
from store.errors import DeadlineExceeded, NotFound
from store.zookeeper import Connection, ZooKeeper
from tests.leader.faulty import Place
from tests.leader.grants import FIRST, LEASE, QUICK, SECOND, Grants


class Silent:
    """A ZooKeeper that is connected and answers nothing."""

    state = Connection.CONNECTED

    def __init__(self) -> None:
        self.asked: list[str] = []

    def start(self) -> None:
        pass

    def wait(self, timeout: float) -> None:
        pass

    def call(self, operation: Any, timeout: float) -> Any:
        self.asked.append(f"{operation}")
        raise DeadlineExceeded(f"{operation}: no answer in {timeout} s")


def test_a_zookeeper_that_is_silent_is_waited_for_once_in_a_lookup(place: Place, grants: Grants) -> None:
    """After HDFS has answered, its word on the leader's session is not waited for as well: that took all the time."""
    grants.claim(FIRST)
    grants.publish("a:1")
    silent = Silent()
    reader = Reader(place.files, cast(ZooKeeper, silent), QUICK)
    assert reader.leader("orders", 30).source is Source.HDFS
    assert silent.asked == ["Get /jobs/orders/leader"]


def test_a_zookeeper_that_falls_silent_over_the_leaders_session_is_not_asked_for_a_while(place: Place) -> None:
    silent = Silent()
    sources = Reader(place.files, cast(ZooKeeper, silent), QUICK).sources
    assert sources.attested("cafe0123-1001", now() + 30) is None
    asked = len(silent.asked)
    with pytest.raises(Fallback, match="a moment ago"):
        sources.get("orders", 30, None)
    assert len(silent.asked) == asked


class Scripted(Silent):
    """A ZooKeeper that answers these, one after the other, and then nothing."""

    def __init__(self, *answers: object) -> None:
        super().__init__()
        self.answers = list(answers)

    def call(self, operation: Any, timeout: float) -> Any:
        if not self.answers:
            return super().call(operation, timeout)
        self.asked.append(f"{operation}")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_zookeeper_that_had_hardly_any_time_is_asked_again_at_once(place: Place, grants: Grants) -> None:
    """Between two leaders it is asked again and again, each time for what is left of some tenths of a second.

    Who then left it alone for a second was told of the next leader that much later, by two stores that both knew.
    """
    grants.claim(FIRST, replace(LEASE, mode=Mode.HDFS, attestation=""))  # or its session would be asked for as well
    grants.publish("a:1")
    record = encode(LeaderInformation("orders", FIRST.epoch, FIRST.session_id, {"rest": "a:1"}, 1))
    scripted = Scripted((record, None), NotFound("orders"), DeadlineExceeded("hardly any time"))
    reader = Reader(place.files, cast(ZooKeeper, scripted), QUICK)
    assert reader.leader("orders", 30).source is Source.ZOOKEEPER
    assert reader.leader("orders", 30).source is Source.HDFS
    assert not scripted.answers
    scripted.answers = [(record, None)]
    assert reader.leader("orders", 30).source is Source.ZOOKEEPER


def test_a_zookeeper_that_has_answered_somebody_else_is_asked_again_at_once(place: Place) -> None:
    silent = Silent()
    sources = Reader(place.files, cast(ZooKeeper, silent), QUICK).sources
    for _ in range(2):
        with pytest.raises(Fallback):
            sources.get("orders", 30, None)
    assert len(silent.asked) == 1
    sources.answered()
    with pytest.raises(Fallback, match="no answer in"):
        sources.get("orders", 30, None)


class Ticking:
    """A clock that goes on when somebody waits, and as far as it is waited for."""

    def __init__(self) -> None:
        self.at = self.began = now()

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if not event.is_set():
            self.at += seconds
        return event.is_set()


class Watched(Scripted):
    """One that can be watched."""

    def __init__(self, *answers: object) -> None:
        super().__init__(*answers)
        self.watchers: list[Any] = []

    def add_listener(self, _: object) -> None:
        pass

    remove_listener = add_listener

    def call(self, operation: Any, timeout: float) -> Any:
        self.watchers.append(operation.watch)
        return super().call(operation, timeout)


def test_who_watches_and_had_no_answer_asks_again_soon(place: Place, grants: Grants) -> None:
    """It went by what it remembered, and waited for a watch that may not be set, and for a change that was over."""
    clock, records = Ticking(), []
    for directory, address in ((FIRST, "a:1"), (SECOND, "b:1")):
        grants.claim(directory)
        grants.publish(address)
        information = LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": address}, 1)
        records.append((encode(information), None))
    watched = Watched(records[0], DeadlineExceeded("No answer in time."), records[1])
    reader = Reader(place.files, cast(ZooKeeper, watched), QUICK, clock=clock)
    reader.sources._local = False  # HDFS is asked seldom
    looks = reader.looks("orders", threading.Event(), 2.0)
    assert epoch_of(next(looks)) == 1
    watched.watchers[0](None)
    assert epoch_of(next(looks)) == 1
    assert epoch_of(next(looks)) == 2
    assert clock.at - clock.began <= 1.2 * UNANSWERED


def epoch_of(look: Look) -> int | None:
    return look.answer.epoch if look.answer is not None else None
