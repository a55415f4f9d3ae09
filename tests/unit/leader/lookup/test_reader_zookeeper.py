"""Reader with a slow or silent ZooKeeper: when it asks again."""

import threading
from typing import Any, cast

import pytest
from msgspec.structs import replace

from leader.layout.information import LeaderInformation, encode
from leader.layout.lease import Mode
from leader.lookup.answers import Look, Source
from leader.lookup.reader import Reader
from leader.lookup.store_clients import Fallback, StoreClients, Waker
from leader.lookup.watch import UNANSWERED_PAUSE_S
from store.clock import now
from store.errors import DeadlineExceeded, NotFound
from store.zookeeper import Connection, ZooKeeper
from tests.unit.leader.faulty import Place
from tests.unit.leader.grants import FIRST, LEASE, QUICK, SECOND, Grants
from tests.unit.leader.lookup.ticking import Ticking


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


def why_not(stores: StoreClients) -> str:
    """Return the reason why HDFS must be asked."""
    found = stores.read_zookeeper("orders", 30, None)
    assert isinstance(found, Fallback)
    return found.sentence


def test_a_lookup_waits_once_for_a_silent_zookeeper(place: Place, grants: Grants) -> None:
    """After HDFS has answered, the reader does not also wait for ZooKeeper's answer about the leader's session."""
    grants.claim(FIRST)
    grants.publish("a:1")
    silent = Silent()
    reader = Reader(place.files, cast(ZooKeeper, silent), QUICK)
    assert reader.leader("orders", 30).source is Source.HDFS
    assert silent.asked == ["Get /jobs/orders/leader"]


def test_zookeeper_is_left_alone_after_silence_about_the_leaders_session(place: Place) -> None:
    silent = Silent()
    stores = Reader(place.files, cast(ZooKeeper, silent), QUICK).stores
    assert stores.session_lives("cafe0123-1001", now() + 30) is None
    asked = len(silent.asked)
    assert "a moment ago" in why_not(stores)
    assert len(silent.asked) == asked


class Scripted(Silent):
    """A ZooKeeper that gives these answers in order, and then none."""

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


def test_zookeeper_is_asked_again_at_once_after_a_short_deadline(place: Place, grants: Grants) -> None:
    """Between two leaders it is asked again and again, each time with some tenths of a second left.

    A reader that then backed off for a second learnt of the next leader that much later, although both stores knew.
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


def test_zookeeper_is_asked_again_at_once_after_it_answered_another_thread(place: Place) -> None:
    scripted = Scripted(DeadlineExceeded("no answer in 30 s"), None)
    stores = Reader(place.files, cast(ZooKeeper, scripted), QUICK).stores
    for _ in range(2):
        assert why_not(stores)
    assert len(scripted.asked) == 1
    assert stores.watch_node("/x", Waker(threading.Event()), 30)
    scripted.answers = [DeadlineExceeded("no answer in 30 s")]
    assert "no answer in" in why_not(stores)


class Watched(Scripted):
    """A ZooKeeper that takes watches."""

    def __init__(self, *answers: object) -> None:
        super().__init__(*answers)
        self.watchers: list[Any] = []

    def add_listener(self, _: object) -> None:
        pass

    remove_listener = add_listener

    def call(self, operation: Any, timeout: float) -> Any:
        self.watchers.append(operation.watch)
        return super().call(operation, timeout)


def test_a_watch_without_an_answer_asks_again_soon(place: Place, grants: Grants) -> None:
    """A watch used to repeat its old answer, and waited for a watch that might not be set."""
    clock, records = Ticking(), []
    for directory, address in ((FIRST, "a:1"), (SECOND, "b:1")):
        information = LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": address}, 1)
        records.append((encode(information), None))
    grants.claim(FIRST)
    grants.publish("a:1")
    watched = Watched(records[0], DeadlineExceeded("No answer in time."), records[1])
    reader = Reader(place.files, cast(ZooKeeper, watched), QUICK, clock=clock)
    reader.rate_limit._unlimited = False  # HDFS is asked seldom
    looks = reader.looks("orders", threading.Event(), 2.0)
    assert epoch_of(next(looks)) == 1
    watched.watchers[0](None)
    assert epoch_of(next(looks)) == 1
    grants.claim(SECOND)
    grants.publish("b:1")
    assert epoch_of(next(looks)) == 2
    assert clock.at - clock.began <= 1.2 * UNANSWERED_PAUSE_S


def epoch_of(look: Look) -> int | None:
    return look.answer.epoch if look.answer is not None else None


class Succeeding(Watched):
    """A ZooKeeper in which the next record comes while a reader waits for the node."""

    def __init__(self, clock: Ticking, *answers: object) -> None:
        super().__init__(*answers)
        clock.wait = self._wait  # type: ignore[method-assign]
        self.waits: list[float] = []

    def _wait(self, event: threading.Event, seconds: float) -> bool:
        self.waits.append(seconds)
        if not event.is_set():
            self.watchers[-1](None)  # the node is made
        assert event.is_set(), "the watch that was set last belongs to who waits"
        return True


@pytest.mark.parametrize("watches", [True, False])
def test_the_next_record_is_read_when_zookeeper_reports_it(place: Place, grants: Grants, *, watches: bool) -> None:
    """A reader used to look for it every 50 ms, and so heard of it that much later."""
    clock, records = Ticking(), []
    for directory, address in ((FIRST, "a:1"), (SECOND, "b:1")):
        information = LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": address}, 1)
        records.append((encode(information), None))
    grants.claim(FIRST)
    grants.publish("a:1")
    gone = NotFound("orders")
    zookeeper = Succeeding(clock, records[0], gone, *([] if watches else [gone]), records[1])
    reader = Reader(place.files, cast(ZooKeeper, zookeeper), QUICK, clock=clock)
    looks = reader.looks("orders", threading.Event(), 2.0)

    def find() -> int | None:
        return epoch_of(next(looks)) if watches else reader.leader("orders", 30).epoch

    assert find() == 1
    grants.claim(SECOND)
    grants.publish("b:1")
    if watches:
        zookeeper.watchers[0](None)
    began = clock.at
    assert find() == 2
    assert clock.at == began, "no time passes but that until the node is made"
    assert len([each for each in zookeeper.asked if each.startswith("Get /jobs")]) == (3 if watches else 4)
