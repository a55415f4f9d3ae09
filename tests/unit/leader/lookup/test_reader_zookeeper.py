"""Reader with a slow or silent ZooKeeper: when it asks again."""

import threading
from typing import Any

import pytest
from msgspec.structs import replace

from leader.errors import Unreachable
from leader.layout.lease import Mode
from leader.lookup.answers import Look, Source
from leader.lookup.reader import Reader
from leader.lookup.store_clients import Fallback, StoreClients, Waker
from leader.lookup.watch import UNANSWERED_PAUSE_S
from store.clock import now
from store.errors import DeadlineExceeded, NotFound
from tests.unit.leader.faulty import Place
from tests.unit.leader.grants import FIRST, LEASE, QUICK, SECOND, Grants, PlayedZooKeeper, written
from tests.unit.leader.lookup.ticking import Ticking


class Silent(PlayedZooKeeper):
    def __init__(self) -> None:
        self.asked: list[str] = []

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
    grants.lead(FIRST, "a:1")
    silent = Silent()
    reader = Reader(place.files, silent.client, QUICK)
    assert reader.leader("orders", 30).source is Source.HDFS
    assert silent.asked == ["Get /jobs/orders/leader"]


def test_zookeeper_is_left_alone_after_silence_about_the_leaders_session(place: Place) -> None:
    silent = Silent()
    stores = Reader(place.files, silent.client, QUICK).stores
    assert stores.session_lives("cafe0123-1001", now() + 30) is None
    asked = len(silent.asked)
    assert "a moment ago" in why_not(stores)
    assert len(silent.asked) == asked


class Scripted(Silent):
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
    record = written(FIRST, "a:1")
    scripted = Scripted((record, None), NotFound("orders"), DeadlineExceeded("hardly any time"))
    reader = Reader(place.files, scripted.client, QUICK)
    assert reader.leader("orders", 30).source is Source.ZOOKEEPER
    assert reader.leader("orders", 30).source is Source.HDFS
    assert not scripted.answers
    scripted.answers = [(record, None)]
    assert reader.leader("orders", 30).source is Source.ZOOKEEPER


def test_a_lookup_without_time_does_not_keep_zookeeper_from_the_next_one(place: Place, grants: Grants) -> None:
    """With HDFS away, the next one was told that no store answers."""
    grants.lead(FIRST, "a:1", replace(LEASE, mode=Mode.HDFS, attestation=""))
    record = written(FIRST, "a:1"), None
    scripted = Scripted(DeadlineExceeded("hardly any time"), record)
    reader = Reader(place.files, scripted.client, QUICK)
    reader.leader("orders", 0.7)
    place.faulty.unreachable = True
    assert reader.leader("orders", 2.0).source is Source.ZOOKEEPER
    assert not scripted.answers


def test_that_no_time_is_left_for_the_leaders_session_says_nothing_about_zookeeper(place: Place) -> None:
    silent = Silent()
    stores = Reader(place.files, silent.client, QUICK).stores
    assert stores.session_lives("cafe0123-1001", now() + 0.01) is None
    assert "no answer in" in why_not(stores)


def test_zookeeper_is_asked_again_before_it_is_said_that_no_store_answers(place: Place, grants: Grants) -> None:
    """It is left alone for a second after a silence, and answers by the time at which HDFS turns out to be away."""
    grants.lead(FIRST, "a:1")
    records = [(written(each, "a:1"), None) for each in (FIRST, SECOND)]
    scripted = Scripted(records[0], DeadlineExceeded("no answer in 30 s"), *records)
    reader = Reader(place.files, scripted.client, QUICK)
    assert reader.leader("orders", 30).source is Source.ZOOKEEPER
    place.faulty.unreachable = True
    for each in (FIRST, SECOND):
        answer = reader.leader("orders", 30)
        assert (answer.epoch, answer.verified) == (each.epoch, each is FIRST)
    with pytest.raises(Unreachable, match="No store said within 30 s"):
        reader.leader("orders", 30)


def test_a_report_that_hdfs_has_answered_is_answered_without_another_question(place: Place, grants: Grants) -> None:
    clock = Ticking()
    reader = Reader(place.files, None, QUICK, clock=clock)
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 2.0)
    place.faulty.before_list = lambda _: clock.sleep(1.0)
    assert reader.report("orders", FIRST.session_id, 2.0).epoch == FIRST.epoch


def test_zookeeper_is_asked_again_at_once_after_it_answered_another_thread(place: Place) -> None:
    scripted = Scripted(DeadlineExceeded("no answer in 30 s"), None)
    stores = Reader(place.files, scripted.client, QUICK).stores
    for _ in range(2):
        assert why_not(stores)
    assert len(scripted.asked) == 1
    assert stores.watch_node("/x", Waker(threading.Event()), 30)
    scripted.answers = [DeadlineExceeded("no answer in 30 s")]
    assert "no answer in" in why_not(stores)


class Watched(Scripted):
    def __init__(self, *answers: object) -> None:
        super().__init__(*answers)
        self.watchers: list[Any] = []

    def call(self, operation: Any, timeout: float) -> Any:
        self.watchers.append(operation.watch)
        return super().call(operation, timeout)


def test_a_watch_without_an_answer_asks_again_soon(place: Place, grants: Grants) -> None:
    """A watch used to repeat its old answer, and waited for a watch that might not be set."""
    clock, records = Ticking(), [(written(FIRST, "a:1"), None), (written(SECOND, "b:1"), None)]
    grants.lead(FIRST, "a:1")
    watched = Watched(records[0], DeadlineExceeded("No answer in time."), records[1])
    reader = Reader(place.files, watched.client, QUICK, clock=clock)
    reader.rate_limit._unlimited = False  # HDFS is asked seldom
    looks = reader.looks("orders", threading.Event(), 2.0)
    assert epoch_of(next(looks)) == 1
    watched.watchers[0](None)
    assert epoch_of(next(looks)) == 1
    grants.lead(SECOND, "b:1")
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
    clock, records = Ticking(), [(written(FIRST, "a:1"), None), (written(SECOND, "b:1"), None)]
    grants.lead(FIRST, "a:1")
    gone = NotFound("orders")
    zookeeper = Succeeding(clock, records[0], gone, *([] if watches else [gone]), records[1])
    reader = Reader(place.files, zookeeper.client, QUICK, clock=clock)
    looks = reader.looks("orders", threading.Event(), 2.0)

    def find() -> int | None:
        return epoch_of(next(looks)) if watches else reader.leader("orders", 30).epoch

    assert find() == 1
    grants.lead(SECOND, "b:1")
    if watches:
        zookeeper.watchers[0](None)
    began = clock.at
    assert find() == 2
    assert clock.at == began, "no time passes but that until the node is made"
    assert len([each for each in zookeeper.asked if each.startswith("Get /jobs")]) == (3 if watches else 4)
