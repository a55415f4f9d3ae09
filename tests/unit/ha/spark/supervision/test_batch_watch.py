"""Batches that take too long, as looks at a query show them."""

from collections.abc import Sequence

import pytest

from ha.spark.supervision.batch_watch import BatchWatch

TIMEOUT, PERIOD = 10.0, 1.0


def looks(watch: BatchWatch, times: Sequence[float], before: int | None = 3, *, works: bool = True) -> list[bool]:
    return [watch.overdue("run", before, now, works=works) for now in times]


def test_a_batch_is_overdue_once_it_was_seen_for_the_time_out() -> None:
    watch = BatchWatch(TIMEOUT)
    assert watch.period == PERIOD
    assert looks(watch, [100, 102, 104, 106, 108, 109.999]) == [False] * 6
    assert looks(watch, [110, 112]) == [True, False], "and is told once"


def test_the_first_batch_of_a_run_has_the_same_time() -> None:
    assert looks(BatchWatch(TIMEOUT), [0, 2, 4, 6, 8, 10], before=None) == [False] * 5 + [True]


def test_a_completed_batch_begins_the_time_anew() -> None:
    watch = BatchWatch(TIMEOUT)
    looks(watch, [100, 102, 104, 106, 108])
    assert looks(watch, [110, 112, 114, 116, 118], before=4) == [False] * 5
    assert looks(watch, [120], before=4) == [True]


def test_a_query_that_waits_for_data_has_no_batch() -> None:
    watch = BatchWatch(TIMEOUT)
    looks(watch, [100, 102, 104, 106, 108])
    assert looks(watch, [109], works=False) == [False]
    assert looks(watch, [110, 112]) == [False, False]


def test_time_in_which_the_host_was_paused_does_not_count() -> None:
    watch = BatchWatch(TIMEOUT)
    assert looks(watch, [100, 1000, 1002, 1004, 1006, 1008]) == [False] * 6
    assert looks(watch, [1010]) == [True]
    slow = BatchWatch(TIMEOUT)
    assert looks(slow, [100, 106, 110]) == [False, False, True], "but a slow host is not paused"


def test_each_run_has_its_own_time() -> None:
    watch = BatchWatch(TIMEOUT)
    looks(watch, [100, 102, 104, 106, 108])
    assert not watch.overdue("other", 3, 110.0, works=True)
    watch.forget({"other"})
    assert looks(watch, [110]) == [False], "it was forgotten"


@pytest.mark.parametrize("timeout", [1.0, 10.0, 50.0, 600.0])
@pytest.mark.parametrize("began", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("late", [0.0, 0.04])
def test_a_batch_is_told_at_most_one_look_too_late(timeout: float, began: float, late: float) -> None:
    """Also if the first look at it takes longer than the others, so that the others come a little too soon."""
    watch, now, looked = BatchWatch(timeout), 0.0, 0.0
    began *= watch.period
    while not watch.overdue("run", 3, now + (late if now < began + watch.period else 0.0), works=now >= began):
        now, looked = max(watch.next_look(looked, answered=True), now + 0.001), now
    assert timeout <= now - began <= timeout + watch.period + 0.1


def test_the_next_look_is_due_when_a_batch_is_overdue() -> None:
    watch = BatchWatch(TIMEOUT)
    assert watch.next_look(99.5, answered=True) == 100.5
    looks(watch, [100, 101])
    watch.overdue("other", 3, 104.0, works=True)
    assert watch.next_look(109.5, answered=True) == 110
    assert watch.next_look(109.5, answered=False) == 110.5, "its query may have completed it"
    looks(watch, [105, 110])
    assert watch.next_look(113.5, answered=True) == 114, "the first one was told, and this one is not"


@pytest.mark.parametrize("timeout", [10.0, 50.0, 600.0])
def test_looks_that_are_only_slow_count(timeout: float) -> None:
    apart = min(0.6 * timeout, 30.0)
    for gap, counts in ((apart, True), (apart + 0.1, False)):
        watch = BatchWatch(timeout)
        assert not any(looks(watch, [0.0, gap]))
        rest = int((timeout - gap) / watch.period)
        told = looks(watch, [gap + watch.period * number for number in range(1, rest + 2)])
        assert any(told) == counts, gap


@pytest.mark.parametrize(("timeout", "period"), [(1.0, 0.1), (20.0, 2.0), (600.0, 2.0)])
def test_looks_are_rare_for_long_times(timeout: float, period: float) -> None:
    assert BatchWatch(timeout).period == period
