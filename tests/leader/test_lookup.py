"""Questions to HDFS about one job, on a clock that is set by hand: when it is asked again, and what silence means."""

import random
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from leader.information import Record
from leader.lookup import FILES_SULK, HURRIED, Lookup
from leader.names import LeaderDirectory
from leader.sources import Sources
from store.bounded import BoundedFiles
from store.errors import ConnectionLost, DeadlineExceeded, StoreError
from store.outcome import Outcome
from tests.leader.grants import QUICK
from tests.leader.samples import A

SILENT = DeadlineExceeded("lookup was not answered in time.")


class Hand:
    """Plays the clock and HDFS, which says that nobody has published yet, or fails."""

    uri = "hdfs://n"

    def __init__(self) -> None:
        self.at = 100.0
        self.asked = 0
        self.epoch = 1
        self.fails: StoreError | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while somebody sleeps."""
        self.under_way: Callable[[], object] = lambda: None
        """What happens before HDFS answers."""
        sources = Sources(cast(BoundedFiles, self), None, QUICK, 30.0, self, random.Random(7))  # noqa: S311
        self.lookup = Lookup("orders", sources)

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
        self.under_way()
        if self.fails is not None:
            return Outcome(None, self.fails, self.at, self.at)
        return Outcome((LeaderDirectory(self.epoch, A), Record(None, frozenset())), None, self.at, self.at)


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_what_hdfs_did_not_say_in_a_moment_is_no_evidence_against_it(hand: Hand) -> None:
    """Found by the simulator: a look's last 44 ms were not enough, and the next one was told that no store answers."""
    assert hand.lookup.ask_files(2.0) is None
    hand.fails = SILENT
    assert "not answered in time" in str(hand.lookup.ask_files(HURRIED / 2))
    hand.fails, before = None, hand.at
    assert hand.lookup.ask_files(2.0) is None
    assert (hand.at, hand.asked) == (before, 3), "it is asked at once"


@pytest.mark.parametrize(("timeout", "error"), [(2.0, SILENT), (HURRIED / 2, ConnectionLost("It broke."))])
def test_who_had_time_to_answer_or_hangs_up_is_left_alone_for_a_moment(
    hand: Hand, timeout: float, error: StoreError
) -> None:
    assert hand.lookup.ask_files(2.0) is None
    hand.fails = error
    assert hand.lookup.ask_files(timeout) is not None
    hand.fails, before = None, hand.at
    assert hand.lookup.ask_files(2.0) is None
    assert hand.at - before == pytest.approx(FILES_SULK, rel=0.21)


def test_who_may_not_ask_now_takes_what_somebody_else_is_about_to_hear(hand: Hand) -> None:
    """Found by the simulator: two asked at once after a failure, and the second was told that no store answers."""
    for hand.epoch in (1, 2, 3):  # what is new each time uses the burst up
        assert hand.lookup.ask_files(2.0) is None
    hand.fails = ConnectionLost("It broke.")
    assert hand.lookup.ask_files(2.0) is not None
    hand.fails = None
    hand.at += 2 * FILES_SULK
    answers, asks, spent = threading.Event(), threading.Event(), hand.asked

    def under_way() -> None:
        asks.set()
        assert answers.wait(30)

    hand.under_way = under_way
    other = threading.Thread(target=hand.lookup.ask_files, args=(2.0,), daemon=True)
    other.start()
    assert asks.wait(30)

    def meanwhile() -> None:
        answers.set()
        other.join(30)

    hand.meanwhile = meanwhile
    before = hand.at
    assert hand.lookup.ask_files(1.0) is None
    assert hand.asked == spent + 1, "one question was enough"
    assert hand.at - before < 0.1


def test_it_waits_for_somebody_else_no_longer_than_it_has_time(hand: Hand) -> None:
    hand.lookup._asking = 1
    hand.lookup._pace.hold(hand.at + 60.0)
    before = hand.at
    assert "a moment ago" in str(hand.lookup.ask_files(1.0))
    assert hand.at - before == pytest.approx(1.0)
    assert hand.asked == 0


def test_a_forked_child_waits_for_no_thread_of_its_parent(hand: Hand) -> None:
    hand.lookup._asking = 1
    hand.lookup.forked()
    hand.lookup._pace.hold(hand.at + 60.0)
    before = hand.at
    assert hand.lookup.ask_files(1.0) is not None
    assert hand.at == before
