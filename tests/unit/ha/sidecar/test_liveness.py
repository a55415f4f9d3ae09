"""When a probed command counts as dead, in a test's own time: each comparison, deadline and start time."""

import logging
import math
from collections.abc import Callable

import pytest

from ha.sidecar.liveness import LATE_S, PAUSE_S, Liveness, Schedule
from store.errors import Unknown

PERIOD, TIMEOUT, THRESHOLD, DELAY, BEGAN = 10.0, 1.0, 3, 5.0, 100.0


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(BEGAN, initial_delay=DELAY, period=PERIOD, timeout=TIMEOUT, threshold=THRESHOLD)


def test_the_first_try_is_due_after_the_initial_delay_and_the_next_ones_a_period_apart(schedule: Schedule) -> None:
    due = []
    for _ in range(3):
        due.append(schedule.due)
        schedule.answered(schedule.due + 0.3, schedule.due + 0.9, alive=True)
    assert due == [105.0, 115.0, 125.0], "the time that a try needs moves none of them"


def test_a_command_is_dead_at_the_threshold_and_not_before(schedule: Schedule) -> None:
    found = []
    for _ in range(THRESHOLD):
        schedule.answered(schedule.due, schedule.due, alive=False)
        found.append(schedule.dead)
    assert found == [False, False, True]


def test_only_failures_in_a_row_count(schedule: Schedule) -> None:
    for alive in (False, False, True, False, False):
        schedule.answered(schedule.due, schedule.due, alive=alive)
    assert not schedule.dead
    assert schedule.failures == 2


def test_what_is_not_known_changes_nothing(schedule: Schedule) -> None:
    for alive in (False, None, False, None, None):
        schedule.answered(schedule.due, schedule.due, alive=alive)
    assert schedule.failures == 2


def test_a_try_longer_than_the_period_is_followed_by_the_next_one_at_once() -> None:
    schedule = Schedule(BEGAN, initial_delay=0.0, period=1.0, timeout=30.0, threshold=THRESHOLD)
    schedule.answered(BEGAN, BEGAN + 25.0, alive=True)
    assert schedule.due == BEGAN + 25.0


@pytest.mark.parametrize(
    ("late", "lasted", "counts"),
    [
        (PAUSE_S, 0.0, 1),
        (PAUSE_S + 0.001, 0.0, 0),
        (0.0, TIMEOUT + PAUSE_S, 1),
        (0.0, TIMEOUT + PAUSE_S + 0.001, 0),
    ],
)
def test_a_failure_around_a_pause_does_not_count(schedule: Schedule, late: float, lasted: float, counts: int) -> None:
    began = schedule.due + late
    schedule.answered(began, began + lasted, alive=False)
    assert schedule.failures == counts
    if not counts:
        assert schedule.due == began + lasted + PERIOD, "what was paused has a whole period"


def test_a_success_around_a_pause_counts(schedule: Schedule) -> None:
    schedule.answered(schedule.due, schedule.due, alive=False)
    schedule.answered(schedule.due + 3600.0, schedule.due + 3600.0, alive=True)
    assert schedule.failures == 0


class Asking:
    """A liveness whose time and tries are the test's: each try waits until the test has it answer."""

    def __init__(self, timeout: float = TIMEOUT, threshold: int = THRESHOLD) -> None:
        self.at = BEGAN
        self.tries: list[Callable[[], None]] = []
        self.answer: str | Exception = ""
        self.given: list[float] = []
        schedule = Schedule(BEGAN, initial_delay=DELAY, period=PERIOD, timeout=timeout, threshold=threshold)
        self.liveness = Liveness("orders", self.probe, schedule, lambda: self.at, self.tries.append)

    def probe(self, timeout: float) -> str:
        self.given.append(timeout)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def look(self, at: float, *, answers: bool = True) -> bool:
        self.at = at
        dead = self.liveness.look()
        if answers and self.tries:
            self.tries.pop(0)()
            dead = self.liveness.look()
        return dead


def said(asking: Asking) -> str:
    return asking.liveness.wrong


def test_a_try_begins_when_it_is_due() -> None:
    asking = Asking()
    for at, begun in ((104.999, 0), (105.0, 1), (114.999, 1), (115.0, 2)):
        asking.look(at)
        assert len(asking.given) == begun, at
    assert asking.given == [TIMEOUT] * 2


@pytest.mark.parametrize(
    "wrong", ["it answered 500", ConnectionRefusedError(111, "Connection refused"), TimeoutError()]
)
def test_failures_at_the_threshold_are_a_death_which_says_what_was_wrong(
    wrong: str | OSError, caplog: pytest.LogCaptureFixture
) -> None:
    asking = Asking()
    asking.answer = wrong
    with caplog.at_level(logging.WARNING):
        assert [asking.look(at) for at in (105.0, 115.0, 125.0)] == [False, False, True]
    expected = wrong if isinstance(wrong, str) else wrong.strerror or "it has no answer in time"
    assert said(asking) == expected
    assert f"the liveness probe has failed (2 of 3): {expected}." in caplog.text


@pytest.mark.parametrize("error", [Unknown("no answer"), RuntimeError("of our own")])
def test_a_store_that_is_away_and_a_fault_of_our_own_kill_nobody(error: Exception) -> None:
    asking = Asking(threshold=1)
    asking.answer = error
    assert not any(asking.look(105.0 + PERIOD * each) for each in range(10))
    assert len(asking.given) == 10


def test_what_is_not_known_neither_counts_nor_makes_up_for_failures() -> None:
    asking = Asking()
    found = []
    answers: list[str | Exception] = ["it answered 500", "it answered 500", Unknown("no answer"), "it answered 500"]
    for number, asking.answer in enumerate(answers):
        found.append(asking.look(105.0 + PERIOD * number))
    assert found == [False, False, False, True]


def test_a_long_time_out_is_no_pause() -> None:
    asking = Asking(timeout=5.0, threshold=1)
    asking.look(105.0, answers=False)
    assert not asking.look(110.499, answers=False)
    assert asking.look(110.5, answers=False)


def test_a_try_that_does_not_come_back_fails_once_a_period_and_no_other_is_begun() -> None:
    asking = Asking()
    assert not asking.look(105.0, answers=False)
    assert not asking.look(105.0 + TIMEOUT + LATE_S - 0.001, answers=False)
    assert said(asking) == ""
    asking.look(105.0 + TIMEOUT + LATE_S, answers=False)
    assert said(asking) == "it has no answer in time"
    found = [asking.look(at, answers=False) for at in (114.999, 115.0, 116.0, 124.999, 125.0)]
    assert found == [False, False, False, False, True]
    assert len(asking.tries) == 1


def test_an_answer_after_it_was_given_up_counts_no_more() -> None:
    asking = Asking()
    asking.answer = "it answered 500"
    asking.look(105.0, answers=False)
    asking.look(106.5, answers=False)
    asking.look(107.0)
    assert asking.liveness.wrong == "it has no answer in time"
    asking.answer = ""
    asking.look(115.0)
    assert len(asking.given) == 2, "the next try is made"
    asking.answer = "it answered 500"
    assert [asking.look(at) for at in (125.0, 135.0, 145.0)] == [False, False, True]


def test_a_probe_that_ends_by_itself_is_never_given_up() -> None:
    asking = Asking(timeout=math.inf, threshold=1)
    assert not any(asking.look(105.0 + each, answers=False) for each in range(100))
    assert len(asking.tries) == 1


def test_a_pause_of_the_sidecar_during_a_try_does_not_count() -> None:
    asking = Asking(threshold=1)
    asking.look(105.0, answers=False)
    assert not asking.look(500.0, answers=False), "the command may have been paused with it"
