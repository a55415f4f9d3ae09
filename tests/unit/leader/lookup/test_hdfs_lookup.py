"""HdfsLookup on a clock that the test sets: when HDFS is asked again, and how silence is judged."""

import random
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec import structs

from leader.layout.information import LeaderInformation, Record, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.lookup.hdfs_lookup import ANSWERED_LATELY_S, BACK_OFF_S, HdfsLookup, NoAnswer
from leader.lookup.leader_view import LeaderView
from leader.lookup.rate_limit import JOB_PAUSE_S, HdfsRateLimit, Jitter
from leader.lookup.store_clients import SHORT_DEADLINE_S, LookupContext, StoreClients
from store.bounded import BoundedFiles
from store.errors import ConnectionLost, DeadlineExceeded, StoreError
from store.outcome import Outcome
from tests.unit.leader.grants import QUICK
from tests.unit.leader.samples import A

SILENT = DeadlineExceeded("lookup was not answered in time.")


class Sessions(StoreClients):
    live = True

    @property
    def connected(self) -> bool:
        return True

    def session_lives(self, token: str, deadline: float) -> bool | None:
        del token, deadline
        return self.live


class Hand:
    """Plays the clock and HDFS, which says that nobody has published yet, or fails."""

    uri = "hdfs://n"

    def __init__(self) -> None:
        self.at = 100.0
        self.asked = 0
        self.epoch = 1
        self.record = Record(None, frozenset())
        self.fails: StoreError | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        """Called while a thread sleeps."""
        self.under_way: Callable[[], object] = lambda: None
        """Called before HDFS answers."""
        context = LookupContext(QUICK, 30.0, self, Jitter(random.Random(7)))  # noqa: S311
        self.sessions = stores = Sessions(context, cast(BoundedFiles, self), None)
        limit = HdfsRateLimit(self, JOB_PAUSE_S)
        self.view = LeaderView()
        self.lookup = HdfsLookup("orders", self.view, threading.Lock(), stores, limit, limit, context)

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds
        self.meanwhile()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        raise AssertionError(f"nobody waits here, for {event}, {seconds} s")

    def outcome(self, name: str, operation: object, timeout: float) -> Outcome[Any]:
        del name, operation, timeout
        self.asked += 1
        started = self.at
        self.under_way()
        if self.fails is not None:
            return Outcome(None, self.fails, started, self.at)
        return Outcome((LeaderDirectory(self.epoch, A), self.record), None, started, self.at)

    def submit(self, name: str, operation: object, timeout: float, done: Callable[[Outcome[Any]], None]) -> None:
        done(self.outcome(name, operation, timeout))

    def leads(self) -> tuple[Lease, LeaderInformation]:
        """Let HDFS have a leader from now on, whose lease it alone attests."""
        lease, information = Lease(5, Mode.HDFS, 600, A, "", "a"), LeaderInformation("orders", 1, A, {"rest": "a:1"})
        self.record = Record(lease, endpoint_entries(information))
        return lease, information

    def audit(self, at: float) -> LeaderInformation | None:
        """Audit at that time, and return the leader that the view has then."""
        self.at = at
        self.lookup.audit_soon()
        self.lookup.audit_if_due()
        return self.view.known.information if self.view.known is not None else None


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_a_short_silence_is_no_evidence_against_hdfs(hand: Hand) -> None:
    """Found by the simulator: a look's last 44 ms were not enough, and the next one was told that no store answers."""
    assert hand.lookup.ask(2.0) is None
    hand.fails = SILENT
    assert hand.lookup.ask(SHORT_DEADLINE_S / 2) is None, "it has answered lately, and its answer counts"
    hand.at += ANSWERED_LATELY_S
    assert hand.lookup.ask(SHORT_DEADLINE_S / 2) == NoAnswer(f"{SILENT}", silent=True)
    assert not hand.lookup.is_silent, "the next question finds out"
    hand.fails, before = None, hand.at
    assert hand.lookup.ask(2.0) is None
    assert (hand.at, hand.asked) == (before, 4), "it is asked at once"


def test_that_no_time_is_left_to_ask_hdfs_says_nothing_about_it(hand: Hand) -> None:
    assert hand.lookup.ask(0.0) == NoAnswer("there was no time left to ask it.")
    assert hand.lookup.ask(2.0) is None
    assert hand.lookup.ask(0.0) is None, "it has answered lately, and its answer counts"
    hand.at += ANSWERED_LATELY_S
    assert hand.lookup.ask(0.0) == NoAnswer("there was no time left to ask it.")
    hand.fails = SILENT
    assert hand.lookup.ask(2.0) == NoAnswer(f"{SILENT}", silent=True)
    hand.at += 2 * BACK_OFF_S
    for timeout in (0.0, SHORT_DEADLINE_S / 2):
        found = hand.lookup.ask(timeout)
        assert found is not None
        assert found.silent, "it was asked for long enough a moment ago"


def test_an_audit_shows_that_hdfs_answers_again(hand: Hand) -> None:
    assert hand.lookup.ask(2.0) is None
    hand.fails = SILENT
    assert hand.lookup.ask(2.0) is not None
    hand.fails = None
    hand.audit(hand.at + 60.0)
    hand.fails = SILENT
    assert hand.lookup.ask(SHORT_DEADLINE_S / 2) is None


def test_an_audit_that_is_too_old_for_the_view_is_made_again_soon(hand: Hand) -> None:
    """Seed 520008108: a stranger's endpoints were told for 10 s, an audit interval, while HDFS answered."""
    lease, information = hand.leads()
    assert hand.lookup.ask(2.0) is None
    forged = structs.replace(information, endpoints={"rest": "evil:1"}, version=information.version + 1)
    hand.view.believe_unverified(forged, hand.at, hand.at)
    assert hand.audit(hand.at) == forged, "the question may just have missed those endpoints"
    hand.at += 2 * JOB_PAUSE_S
    hand.record = Record(structs.replace(lease, sequence=6), endpoint_entries(information))
    hand.lookup.audit_if_due()
    assert hand.view.known is not None
    assert hand.view.known.information == information


def test_a_leader_that_is_found_dead_is_news(hand: Hand) -> None:
    """Found by the simulator: HDFS was not asked for the next leader for as long as if nothing had happened."""
    lease = Lease(7, Mode.ZOOKEEPER, 30_000, A, "cafe0123-1001", "a")
    leads = LeaderInformation("orders", 1, A, {"rest": "a:1"})
    hand.record = Record(lease, endpoint_entries(leads))
    assert hand.lookup.ask(2.0) is None
    hand.at += 5.0
    hand.sessions.live = False
    assert hand.lookup.ask(2.0) is None
    assert hand.view.known is not None
    assert hand.view.known.information is None
    assert hand.lookup.ask(2.0) is None
    assert hand.asked == 3, "HDFS is asked at once for the next leader"


@pytest.mark.parametrize(("timeout", "error"), [(2.0, SILENT), (SHORT_DEADLINE_S / 2, ConnectionLost("It broke."))])
def test_hdfs_is_left_alone_briefly_after_silence_or_an_error(hand: Hand, timeout: float, error: StoreError) -> None:
    assert hand.lookup.ask(2.0) is None
    hand.fails = error
    assert hand.lookup.ask(timeout) is not None
    hand.fails, before = None, hand.at
    assert hand.lookup.ask(2.0) is None
    assert hand.at - before == pytest.approx(BACK_OFF_S, rel=0.21)


def test_a_thread_without_a_token_waits_for_the_answer_to_another_thread(hand: Hand) -> None:
    """Found by the simulator: two asked at once after a failure, and the second was told that no store answers."""
    for hand.epoch in (1, 2, 3):  # new answers use up the burst
        assert hand.lookup.ask(2.0) is None
    hand.fails = ConnectionLost("It broke.")
    assert hand.lookup.ask(2.0) is not None
    hand.fails = None
    hand.at += 2 * BACK_OFF_S
    answers, asks, spent = threading.Event(), threading.Event(), hand.asked

    def under_way() -> None:
        asks.set()
        assert answers.wait(30)

    hand.under_way = under_way
    other = threading.Thread(target=hand.lookup.ask, args=(2.0,), daemon=True)
    other.start()
    assert asks.wait(30)

    def meanwhile() -> None:
        answers.set()
        other.join(30)

    hand.meanwhile = meanwhile
    before = hand.at
    assert hand.lookup.ask(1.0) is None
    assert hand.asked == spent + 1, "one question was enough"
    assert hand.at - before < 0.1


def test_a_leader_is_dead_only_if_its_lease_has_stood_for_its_whole_ttl_since_the_answer_came(hand: Hand) -> None:
    """It may have been renewed after the question was sent, and before the answer came."""
    lease, information = hand.leads()

    def slowly() -> None:
        hand.at += 0.5

    asked, hand.under_way = hand.at, slowly
    assert hand.lookup.ask(2.0) is None
    hand.under_way = lambda: None
    ttl = lease.ttl * (1 + QUICK.drift)
    hand.at = asked + ttl + 0.01
    assert hand.lookup.ask(2.0) is None
    assert hand.view.known is not None
    assert hand.view.known.information == information
    hand.at = asked + 0.5 + ttl + JOB_PAUSE_S
    assert hand.lookup.ask(2.0) is None
    assert hand.view.known.information is None


def test_an_audit_marks_a_leader_dead_whose_lease_was_not_renewed(hand: Hand) -> None:
    """Decision 27: nobody asks HDFS while a stranger keeps a dead leader's record in ZooKeeper, but audits do."""
    lease, information = hand.leads()
    ttl, first = lease.ttl * (1 + QUICK.drift), hand.at
    assert hand.lookup.ask(2.0) is None
    assert hand.audit(first + ttl - 0.01) == information
    assert hand.audit(first + ttl) is None


def test_an_audit_finds_a_leader_alive_whose_lease_was_renewed(hand: Hand) -> None:
    lease, information = hand.leads()
    ttl, first = lease.ttl * (1 + QUICK.drift), hand.at
    assert hand.lookup.ask(2.0) is None
    for renewal in (1, 2, 3):
        hand.record = Record(structs.replace(lease, sequence=5 + renewal), endpoint_entries(information))
        assert hand.audit(first + 0.9 * renewal * ttl) == information
    assert hand.audit(first + 2.8 * ttl) == information
    assert hand.audit(first + 3.7 * ttl) is None


def test_it_waits_for_another_thread_no_longer_than_its_deadline(hand: Hand) -> None:
    hand.lookup._asking = 1
    hand.lookup._limit.hold(hand.at + 60.0)
    before = hand.at
    assert "no time left" in str(hand.lookup.ask(1.0))
    assert hand.at - before == pytest.approx(1.0)
    assert hand.asked == 0


def test_a_forked_child_waits_for_no_thread_of_its_parent(hand: Hand) -> None:
    hand.lookup._asking = 1
    hand.lookup.forked(threading.Lock())
    hand.lookup._limit.hold(hand.at + 60.0)
    before = hand.at
    assert hand.lookup.ask(1.0) is not None
    assert hand.at == before
