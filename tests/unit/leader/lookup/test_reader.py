"""Reader over a real directory, without ZooKeeper: lookups are bounded and correct, and errors are clear."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from leader.errors import InvalidName, NoLeader, Unreachable
from leader.layout import tree as job
from leader.layout.lease import Mode
from leader.lookup.answers import Answer, Source
from leader.lookup.reader import STRANGERS, Reader
from leader.lookup.single_flight import Flight
from store.clock import now
from store.errors import ConnectionLost
from store.files import Entry
from store.zookeeper import ZooKeeper
from tests.patience import PATIENCE_S
from tests.unit.leader.faulty import Place, hanging, in_threads
from tests.unit.leader.grants import FIRST, LEASE, QUICK, SECOND, Grants
from tests.unit.leader.samples import A, B

PAUSE_S = 0.4
"""Less than a reader pauses before it looks for a successor: it looks once."""


@pytest.fixture
def reader(place: Place) -> Reader:
    return Reader(place.files, None, QUICK)


def test_an_answer_names_the_leader(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    answer = reader.leader("orders", 30)
    assert (answer.job, answer.epoch, answer.session_id, dict(answer.endpoints)) == ("orders", 1, A, {"rest": "a:1"})
    assert (answer.source, answer.verified, answer.stale) == (Source.HDFS, True, False)
    assert 0 <= answer.age < 30
    assert reader.fallbacks == {"none": 1}


def test_the_next_leader_and_its_next_publication(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 30)
    grants.lead(SECOND, "b:1")
    assert dict(reader.leader("orders", 30).endpoints) == {"rest": "b:1"}
    grants.publish("b:2", version=2)
    assert dict(reader.leader("orders", 30).endpoints) == {"rest": "b:2"}


def test_who_has_no_leader_is_told_why(place: Place, reader: Reader) -> None:
    with pytest.raises(NoLeader, match="There is no job 'orders'"):
        reader.leader("orders", 30)
    grants = Grants(place)
    with pytest.raises(NoLeader, match="Job 'orders' has never had a leader"):
        reader.leader("orders", 30)
    grants.claim(FIRST)
    with pytest.raises(NoLeader, match="has no leader now; the last epoch was 1"):
        reader.leader("orders", 30)
    grants.lead(SECOND, "a:1", replace(LEASE, mode=Mode.RELEASED, ttl_ms=0, attestation=""))
    with pytest.raises(NoLeader, match="has no leader now"):
        reader.leader("orders", 30)


def test_a_leader_with_an_expired_lease_is_not_found(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1", replace(LEASE, mode=Mode.HDFS, ttl_ms=50, attestation=""))
    assert reader.leader("orders", 30).epoch == 1
    end = now() + 30
    while now() < end:
        try:
            reader.leader("orders", PAUSE_S)
        except NoLeader:
            return
    raise AssertionError("a dead leader was answered for 30 seconds")


def test_a_reader_that_knew_a_leader_waits_for_the_next_one(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 30)
    grants.release()
    listing = grants.place.faulty.list

    def list_then_claim(path: str) -> list[Entry]:
        found = listing(path)
        if grants.directory == FIRST:
            grants.lead(SECOND, "b:1")
        return found

    grants.place.faulty.list = list_then_claim  # type: ignore[method-assign]  # the next leader comes after this look
    assert reader.leader("orders", 30).epoch == 2


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ä", "a\n", "x" * 129])
def test_a_bad_name(reader: Reader, name: str) -> None:
    for ask in (reader.leader, lambda job: reader.report(job, A), lambda job: next(reader.watch(job, stopped()))):
        with pytest.raises(InvalidName):
            ask(name)


def stopped() -> threading.Event:
    return threading.Event()


def test_no_store_answers(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    grants.place.faulty.unreachable = True
    with pytest.raises(Unreachable) as caught:
        reader.leader("orders", 30)
    sentence = str(caught.value)
    assert "No store said within 30 s who leads job 'orders'" in sentence
    assert "ZooKeeper: none is configured" in sentence
    assert "File system: No answer" in sentence
    with pytest.raises(Unreachable):
        reader.leader("orders", 30, stale=True)


def test_the_last_known_answer_is_marked_as_stale_and_only_given_if_asked_for(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 30)
    grants.place.faulty.unreachable = True
    answer = reader.leader("orders", 30, stale=True)
    assert (answer.epoch, answer.stale, dict(answer.endpoints)) == (1, True, {"rest": "a:1"})
    with pytest.raises(Unreachable):
        reader.leader("orders", 30)


def test_a_store_that_hangs_costs_no_more_than_the_deadline(grants: Grants, reader: Reader) -> None:
    release = threading.Event()
    grants.place.faulty.before_list = lambda _: release.wait(PATIENCE_S)
    started = now()
    try:
        with pytest.raises(Unreachable, match="no answer in time"):
            reader.leader("orders", 0.2)
    finally:
        release.set()
    assert now() - started < PATIENCE_S / 2, "it does not wait for the store"


def test_a_zookeeper_that_is_not_there_costs_its_share_and_hdfs_answers(grants: Grants) -> None:
    grants.lead(FIRST, "a:1")
    absent = ZooKeeper("127.0.0.1:1", session_timeout=2.0)
    reader = Reader(grants.place.files, absent, QUICK)
    try:
        assert reader.leader("orders", 30).source is Source.HDFS
        assert reader.fallbacks == {"error": 1}
        grants.place.faulty.unreachable = True
        with pytest.raises(Unreachable, match=r"ZooKeeper: .* File system: No answer"):
            reader.leader("orders", 30)
    finally:
        absent.close()


def test_a_report_asks_hdfs_and_returns_the_present_leader(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 30)
    grants.lead(SECOND, "b:1")
    assert reader.report("orders", A, 30).session_id == B
    grants.place.faulty.unreachable = True
    with pytest.raises(Unreachable, match=r"No store said .* File system: No answer"):
        reader.report("orders", B, 30)


def test_jobs_are_kept_apart(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    job.create(grants.place.direct, "payments")
    assert reader.leader("orders", 30).epoch == 1
    with pytest.raises(NoLeader, match="payments"):
        reader.leader("payments", 30)


def test_the_newest_known_epoch_is_the_present_one(grants: Grants, reader: Reader) -> None:
    assert reader.epoch_is("orders", 1, A), "nothing is known that speaks against it"
    grants.lead(SECOND, "b:1")
    reader.leader("orders", 30)
    assert reader.epoch_is("orders", 2, B)
    assert not reader.epoch_is("orders", 2, A)
    assert not reader.epoch_is("orders", 1, A)
    assert reader.epoch_is("orders", 3, A)


class Watch:
    """A watch on a thread of its own, whose answers are taken one by one."""

    def __init__(self, reader: Reader) -> None:
        self.stop = threading.Event()
        self.answers: list[Answer | None] = []
        self.news = threading.Condition()
        self.thread = threading.Thread(target=self.run, args=(reader,), daemon=True)
        self.thread.start()

    def run(self, reader: Reader) -> None:
        for answer in reader.watch("orders", self.stop, 30):
            with self.news:
                self.answers.append(answer)
                self.news.notify_all()

    def heard(self, count: int) -> list[int | None]:
        with self.news:
            assert self.news.wait_for(lambda: len(self.answers) >= count, 30), self.answers
            return [answer.epoch if answer else None for answer in self.answers]


@pytest.fixture
def watch(grants: Grants, reader: Reader) -> Iterator[Watch]:
    assert grants.directory.epoch == 0
    watching = Watch(reader)
    yield watching
    watching.stop.set()
    watching.thread.join(PATIENCE_S)
    assert not watching.thread.is_alive()


def test_a_watch_yields_every_true_change_once(grants: Grants, watch: Watch) -> None:
    assert watch.heard(1) == [None]
    grants.lead(FIRST, "a:1")
    assert watch.heard(2) == [None, 1]
    grants.publish("a:1", version=2)
    grants.lead(SECOND, "b:1")
    epochs = watch.heard(3)
    if epochs[2] is None:  # it looked between the claim and the publication
        epochs = watch.heard(4)
    assert epochs[-1] == 2
    assert epochs.count(1) == 1, "the same addresses again are no change"


def test_a_watch_says_nothing_while_no_store_answers_and_goes_on_afterwards(grants: Grants, watch: Watch) -> None:
    watch.heard(1)
    grants.place.faulty.unreachable = True
    grants.lead(FIRST, "a:1")
    assert watch.thread.is_alive()
    assert watch.answers == [None]
    grants.place.faulty.unreachable = False
    assert watch.heard(2) == [None, 1]


def test_no_leader_is_not_replaced_by_no_answer(grants: Grants, place: Place) -> None:
    """Found by the simulator: the last look before the deadline had no time left to be answered."""

    class Breaks:
        def now(self) -> float:
            return now()

        def sleep(self, seconds: float) -> None:
            del seconds
            place.faulty.unreachable = True

        def wait(self, event: threading.Event, seconds: float) -> bool:
            return event.wait(seconds)

    grants.lead(FIRST, "a:1")
    reader = Reader(place.files, None, QUICK, clock=Breaks())
    reader.leader("orders", 30)
    grants.release()
    with pytest.raises(NoLeader, match="has no leader now"):
        reader.leader("orders", 30)


def test_one_of_many_threads_asks_and_all_get_the_answer(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 30)
    asked, all_wait, waiting = list[str](), threading.Event(), threading.Semaphore(0)

    def until_all_wait(path: str) -> None:
        asked.append(path)
        all_wait.wait(PATIENCE_S)

    grants.place.faulty.before_list = until_all_wait
    flight = reader._lookup("orders")._flight
    run = flight.run

    def run_counted(ask: Any, found: Any, timeout: float) -> Any:
        waiting.release()
        return run(ask, found, timeout)

    flight.run = run_counted  # type: ignore[method-assign]  # to know when all are there

    def release() -> None:
        for _ in range(20):
            waiting.acquire(timeout=PATIENCE_S)
        all_wait.set()

    threading.Thread(target=release, daemon=True).start()
    answers = in_threads(20, lambda _: reader.leader("orders", 30).epoch)
    assert answers == [1] * 20
    assert len(asked) < 20, "a list each would be 20 and more"


def test_a_thread_asks_itself_after_anothers_question_has_failed(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 30)
    began, release, failed = threading.Event(), threading.Event(), list[Exception]()

    def fail_once(_: str) -> None:
        if not began.is_set():
            began.set()
            release.wait(PATIENCE_S)
            raise ConnectionLost("No answer.")

    grants.place.faulty.before_list = fail_once

    def ask() -> None:
        try:
            reader.leader("orders", 30)
        except Unreachable as error:
            failed.append(error)

    first = threading.Thread(target=ask, daemon=True)
    first.start()
    assert began.wait(PATIENCE_S)
    threading.Timer(0.0, release.set).start()
    assert reader.leader("orders", 30).epoch == 1
    first.join(PATIENCE_S)
    assert len(failed) == 1


def test_a_thread_waits_for_anothers_question_no_longer_than_its_timeout(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    reader.leader("orders", 30)
    began, release = threading.Event(), threading.Event()
    grants.place.faulty.before_list = hanging(began, release)
    first = threading.Thread(target=lambda: reader.leader("orders", 60), daemon=True)
    first.start()
    assert began.wait(PATIENCE_S)
    assert reader.leader("orders", 0.1).verified, "HDFS has answered a moment ago, and 0.1 s say nothing about it"
    with pytest.raises(Unreachable, match=r"No store said within 1\.5 s"):
        reader.leader("orders", 1.5)
    assert reader.leader("orders", 0.1, stale=True).stale
    release.set()
    first.join(PATIENCE_S)


def test_missing_jobs_cost_little_memory(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    assert reader.leader("orders", 30).epoch == 1
    for number in range(STRANGERS + 50):
        with pytest.raises(NoLeader):
            reader.leader(f"stranger-{number}", 30)
    gc.collect()  # tracebacks of the errors hold some, in circles
    assert len(reader._strangers) <= STRANGERS + 1, "those asked for lately, and the one that is asked for now"
    assert set(reader._jobs) == {"orders"}
    assert reader.leader("orders", 30).epoch == 1


def test_a_child_forked_in_the_middle_of_a_look_asks_for_itself(grants: Grants, reader: Reader) -> None:
    grants.lead(FIRST, "a:1")
    state = reader._lookup("orders")
    reader.leader("orders", 30)
    with state._lock, reader._lock:
        state._flight.flight = Flight(0.0, 0.0)  # of a thread that the child does not have
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(30)
                os._exit(0 if reader.leader("orders", 20).epoch == 1 else 1)
            except BaseException:  # noqa: BLE001  # whatever it is, the child must not run the other tests
                os._exit(2)
        state._flight.flight = None
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
