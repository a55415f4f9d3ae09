"""Tests of the judge of ten thousand batches in a row, with made-up figures."""

import pytest

from benchmarks.spark.many_batches import COMPACTION, YOUNG_EVERY, Found, summarise

BATCHES = 1000


def found(growth: float, machine: float = 1.0, new: float = 10.0) -> Found:
    """An output that gets slower by a factor, on a machine that does so as well; a new one takes so many ms."""
    end = BATCHES - BATCHES // 10
    output = [10.0] * end + [10.0 * growth * machine] * (BATCHES - end)
    young = [new] * (end // YOUNG_EVERY) + [new * machine] * ((BATCHES - end) // YOUNG_EVERY)
    log = [500.0 if number % COMPACTION == COMPACTION - 1 else 5.0 for number in range(BATCHES)]
    return Found(output, young, log)


@pytest.mark.slow  # it draws
def test_an_output_is_compared_with_a_new_one_at_the_same_time() -> None:
    assert [each.met for each in summarise(found(1.09, machine=3.0, new=20.0)).targets] == [True]
    assert [each.met for each in summarise(found(1.11, machine=0.5, new=20.0)).targets] == [False]


@pytest.mark.slow
def test_batches_that_compact_the_log_have_a_row_of_their_own() -> None:
    rows = {name: figures for name, *figures in summarise(found(1.0)).rows}
    assert rows["file sink's log, median"] == [5.0, 5.0, 500.0]
    assert rows["file sink's log, mean"] == [54.5, 54.5, 500.0]
    assert rows["file sink's log, batches that compact it"] == [500.0, 500.0, 500.0]
