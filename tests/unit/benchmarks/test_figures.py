"""Tests of summaries with known results."""

import math

import pytest

from benchmarks.figures import Summary, middle, percentile, ratio, summary, text
from benchmarks.result import Target


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100)])
def test_a_percentile_is_the_least_number_that_so_many_are_not_above(share: float, value: int) -> None:
    assert percentile(range(1, 101), share) == value


def test_of_no_numbers_there_is_none() -> None:
    with pytest.raises(ValueError, match="no percentile of no numbers"):
        percentile([], 0.5)


def test_a_summary_counts_each_call() -> None:
    found = summary([0.001] * 999 + [1.0])
    assert (found.p50, found.p99, found.p999) == (0.001, 0.001, 0.001)
    assert found.per_second == pytest.approx(1000 / 1.999)
    assert summary([0.001] * 998 + [1.0] * 2).p999 == 1.0


def test_one_disturbed_round_moves_no_median() -> None:
    calm, disturbed = Summary(1.0, 2.0, 3.0, 4.0), Summary(100.0, 200.0, 300.0, 0.1)
    assert middle([calm, disturbed, calm]) == calm


def test_a_ratio_is_taken_within_rounds() -> None:
    """A machine that is ten times slower for a while slows both, and the ratio stays."""
    one = [Summary(p50, p50, p50, 1.0) for p50 in (2.0, 20.0, 2.0)]
    other = [Summary(p50, p50, p50, 1.0) for p50 in (1.0, 10.0, 1.0)]
    assert ratio(one, other) == 2.0


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (1.0, "1"), (0.012345, "0.0123"), (1.20, "1.2"), (12.345, "12.3"), (99.96, "100"),
     (123456.7, "123,457"), (math.inf, "never"), (math.nan, "-")],
)  # fmt: skip
def test_three_digits_or_a_word_are_written(value: float, written: str) -> None:
    assert text(value) == written


@pytest.mark.parametrize(
    ("measured", "at_most", "met"),
    [(1.0, True, True), (1.1, True, False), (0.9, False, False), (1.0, False, True), (math.nan, True, False),
     (math.nan, False, False), (math.inf, True, False)],
)  # fmt: skip
def test_a_target_is_met_on_its_own_side(measured: float, at_most: bool, met: bool) -> None:
    assert Target("t", 1.0, measured, "x", at_most).met is met
