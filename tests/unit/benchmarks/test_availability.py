"""Tests of the open loop and its judge, with lookups of known outcome."""

import math
import threading
from itertools import pairwise

import pytest

from benchmarks.availability import asking as asking_module
from benchmarks.availability.asking import Asked, Asking, ask_until, await_first
from benchmarks.availability.outages import Trouble, counted, judge
from ha.sandbox import SandboxError
from store.clock import now
from tests.limits import HANGS_S
from tests.unit.ha.waiting import wait_until

TROUBLE = Trouble("ZooKeeper killed", began=100.0, ended=160.0, watched=165.0, moved=130.0, epoch=8)


def lookups(seconds: float | None, epoch: int = 8) -> list[Asked]:
    return [(float(due), seconds, epoch) for due in range(90, 180)]


def test_only_lookups_that_were_due_in_the_outage_count() -> None:
    assert [due for due, _, _ in counted(TROUBLE, lookups(0.01))] == list(range(100, 165))


@pytest.mark.parametrize(
    ("seconds", "soon", "late"),
    [(0.1, 1.0, 1.0), (0.11, 0.0, 1.0), (2.0, 0.0, 1.0), (2.01, 0.0, 0.0), (None, 0.0, 0.0)],
)
def test_an_answer_counts_if_it_came_in_time(seconds: float | None, soon: float, late: float) -> None:
    verdict = judge(TROUBLE, lookups(seconds))
    assert (verdict.soon, verdict.late) == (soon, late)
    assert verdict.longest == (math.inf if seconds is None else seconds)


@pytest.mark.parametrize(
    ("asked", "misled"),
    [
        ([(due, 0.01, 7 if due < 150 else 8) for due, _, _ in lookups(0.01)], 19.0),
        (lookups(0.01, epoch=8), 0.0),
        ([(due, 0.01, 7 if due < 130 else 8) for due, _, _ in lookups(0.01)], 0.0),  # it is the right answer until then
        (lookups(None, epoch=0), 0.0),  # no answer names nobody
    ],
)
def test_the_old_leader_is_named_for_as_long_as_a_lookup_that_begins_is_told_of_it(
    asked: list[Asked], misled: float
) -> None:
    assert judge(TROUBLE, asked).misled == misled
    calm = Trouble("HDFS killed", 100.0, 120.0, 125.0)
    assert judge(calm, lookups(0.01, epoch=3)).misled == 0.0, "no leader has changed"


def test_an_outage_in_which_nobody_asked_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="No lookup was made during this outage: ZooKeeper killed"):
        judge(TROUBLE, [])


def test_a_question_that_hangs_holds_up_none_of_the_others() -> None:
    stuck, over = threading.Event(), threading.Event()
    numbers = iter(range(1, 1000))

    def ask() -> int:
        number = next(numbers)
        if number == 1:
            stuck.wait(HANGS_S)
        if number == 6:
            over.set()
            stuck.set()
        return number

    asking = Asking(ask)
    ask_until(over, asking, now(), 0.001)
    wait_until(asking.answered, what="each question is answered")
    found = {number: (due, seconds) for due, seconds, number in asking.found()}
    assert len(found) >= 6
    due, seconds = found[1]
    assert seconds is not None
    assert due + seconds >= found[6][0], "its own time is counted, and the sixth was asked meanwhile"


def test_questions_are_due_at_multiples_whatever_their_answers_take() -> None:
    over, numbers = threading.Event(), iter(range(1000))

    def ask() -> int:
        if next(numbers) == 5:
            over.set()
        return 7

    asking = Asking(ask)
    origin = now() - 10
    ask_until(over, asking, origin, 0.002)
    dues = [due for due, _, _ in asking.found()]
    assert all(after - before == pytest.approx(0.002) for before, after in pairwise(dues))
    assert all((due - origin) / 0.002 == pytest.approx(round((due - origin) / 0.002)) for due in dues)


def test_what_fails_is_no_answer_however_fast_it_fails() -> None:
    over = threading.Event()

    def ask() -> int:
        over.set()
        raise ConnectionError

    asking = Asking(ask)
    ask_until(over, asking, now(), 0.001)
    assert {(seconds, epoch) for _, seconds, epoch in asking.found()} == {(None, 0)}


def test_what_has_not_ended_is_no_answer() -> None:
    asking = Asking(lambda: threading.Event().wait(HANGS_S) and 1)
    asking.at(5.0)
    assert not asking.answered()
    assert asking.found() == [(5.0, None, 0)]


def test_what_is_not_there_at_once_is_asked_for_again() -> None:
    left = [ConnectionError, ValueError]

    def ask() -> int:
        if left:
            raise left.pop()
        return 7

    await_first(ask)
    assert not left


def test_what_never_comes_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_module, "FIRST", 0.0)
    with pytest.raises(SandboxError, match="There was no answer after 0 seconds: ZeroDivisionError"):
        await_first(lambda: 1 // 0)
