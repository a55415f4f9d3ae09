"""Measures of the benchmark of replication, on made-up times and closures."""

from math import isnan

import pytest

from benchmarks.replication import STEP_S, losses, newly_referenced, percentile


def test_the_loss_is_the_age_of_the_newest_batch_at_the_other_side() -> None:
    committed = {1: 10.0, 2: 11.0}
    found = losses(committed, [(10.5, 1), (11.5, 2)], 10.25, 12.0)
    assert found[0] == pytest.approx(0.5, abs=STEP_S), "nothing had arrived before"
    assert max(found) == pytest.approx(1.5, abs=2 * STEP_S)
    assert found[-1] == pytest.approx(1.0, abs=2 * STEP_S)
    assert losses(committed, [], 10.0, 12.0) == []


def test_a_file_is_newly_referenced_once() -> None:
    closures = {1: {"a": 5, "b": 7}, 2: {"b": 7, "c": 11}, 3: {"a": 5, "c": 11, "d": 1}}
    assert newly_referenced(closures, [1, 2, 3]) == 24
    assert newly_referenced(closures, [3]) == 17
    assert newly_referenced(closures, []) == 0


def test_a_percentile() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert percentile([float(each) for each in range(100)], 0.5) == 50.0
    assert isnan(percentile([], 0.5))
