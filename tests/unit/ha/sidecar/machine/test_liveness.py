"""When a probed run counts as dead: each comparison, deadline and start time."""

import math

import pytest

from ha.sidecar.machine.liveness import LATE_S, NO_ANSWER, PAUSE_S, Schedule

PERIOD, TIMEOUT, THRESHOLD, DUE = 10.0, 1.0, 3, 105.0
WRONG = "it answered 500"


@pytest.fixture
def schedule() -> Schedule:
    return Schedule(DUE, PERIOD, TIMEOUT, THRESHOLD)


def tried(schedule: Schedule, wrong: str | None, *, late: float = 0.0, lasted: float = 0.0) -> bool:
    """Try once, when it is due or later; returns whether the run is dead."""
    began = schedule.due + late
    assert schedule.look(began)
    schedule.answered(began, began + lasted, wrong)
    return schedule.dead


def test_a_try_begins_when_it_is_due_and_the_next_ones_a_period_apart(schedule: Schedule) -> None:
    assert not schedule.look(DUE - 0.001)
    due = []
    for _ in range(3):
        due.append(schedule.due)
        tried(schedule, "", late=0.3, lasted=0.6)
    assert due == [105.0, 115.0, 125.0], "the time that a try needs moves none of them"


def test_a_run_is_dead_at_the_threshold_and_says_what_was_wrong(schedule: Schedule) -> None:
    assert [tried(schedule, WRONG) for _ in range(THRESHOLD)] == [False, False, True]
    assert schedule.wrong == WRONG


def test_only_failures_in_a_row_count_and_what_is_not_known_changes_nothing(schedule: Schedule) -> None:
    for wrong in (WRONG, WRONG, "", WRONG, None, WRONG, None):
        assert not tried(schedule, wrong)
    assert schedule.failures == 2


def test_a_try_longer_than_the_period_is_followed_by_the_next_one_at_once() -> None:
    schedule = Schedule(100.0, 1.0, 30.0, THRESHOLD)
    tried(schedule, "", lasted=25.0)
    assert schedule.due == 125.0


@pytest.mark.parametrize(
    ("late", "lasted", "counts"),
    [(PAUSE_S, 0.0, 1), (PAUSE_S + 0.001, 0.0, 0), (0.0, TIMEOUT + PAUSE_S, 1), (0.0, TIMEOUT + PAUSE_S + 0.001, 0)],
)
def test_a_failure_around_a_pause_does_not_count(schedule: Schedule, late: float, lasted: float, counts: int) -> None:
    began = schedule.due + late
    tried(schedule, WRONG, late=late, lasted=lasted)
    assert schedule.failures == counts
    if not counts:
        assert schedule.due == began + lasted + PERIOD, "what was paused has a whole period"


def test_a_success_around_a_pause_counts(schedule: Schedule) -> None:
    tried(schedule, WRONG)
    tried(schedule, "", late=3600.0)
    assert schedule.failures == 0


def test_a_try_that_does_not_come_back_fails_once_a_period_and_no_other_is_begun(schedule: Schedule) -> None:
    assert schedule.look(DUE)
    assert not schedule.look(DUE + TIMEOUT + LATE_S - 0.001)
    assert (schedule.failures, schedule.wrong) == (0, "")
    found = []
    for at in (DUE + TIMEOUT + LATE_S, 114.999, 115.0, 116.0, 124.999, 125.0):
        assert not schedule.look(at)
        found.append(schedule.failures)
    assert found == [1, 1, 2, 2, 2, 3]
    assert (schedule.dead, schedule.wrong) == (True, NO_ANSWER)


def test_an_answer_after_it_was_given_up_counts_no_more(schedule: Schedule) -> None:
    schedule.look(DUE)
    schedule.look(DUE + TIMEOUT + LATE_S)
    schedule.answered(DUE, 107.0, WRONG)
    assert (schedule.failures, schedule.wrong) == (1, NO_ANSWER)
    assert not tried(schedule, ""), "the next try is made"
    assert schedule.failures == 0


def test_the_answer_to_a_try_of_an_earlier_run_counts_for_nothing(schedule: Schedule) -> None:
    schedule.answered(90.0, 91.0, WRONG)
    schedule.look(DUE)
    schedule.answered(90.0, 91.0, WRONG)
    assert schedule.failures == 0


def test_a_long_time_out_is_no_pause_and_a_probe_that_ends_by_itself_is_never_given_up() -> None:
    schedule = Schedule(DUE, PERIOD, 5.0, 1)
    assert schedule.look(DUE)
    found = []
    for at in (110.499, 110.5):
        schedule.look(at)
        found.append(schedule.dead)
    assert found == [False, True]
    endless = Schedule(DUE, PERIOD, math.inf, 1)
    assert [endless.look(DUE + each) for each in range(100)] == [True] + [False] * 99
    assert not endless.dead
