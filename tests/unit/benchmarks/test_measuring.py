"""Tests of the timing: all calls are made, as often as wanted, in turns."""

import gc
from itertools import groupby

import pytest

from benchmarks.measuring import TURNS, Contestant, compare, no_collector, one_round, throughput


def test_a_round_gives_turns_and_makes_each_call_as_often_as_said() -> None:
    made: list[str] = []
    contestants = [Contestant("a", lambda: made.append("a"), 25), Contestant("b", lambda: made.append("b"), 10)]
    found = one_round(contestants)
    assert {name: len(durations) for name, durations in found.items()} == {"a": 25, "b": 10}
    assert [name for name, _ in groupby(made)] == ["a", "b"] * TURNS


def test_each_round_is_begun_by_another() -> None:
    made: list[str] = []
    contestants = [Contestant(name, lambda name=name: made.append(name), TURNS) for name in "abc"]  # type: ignore[misc]
    for first in range(4):
        made.clear()
        one_round(contestants, first)
        assert "".join(made[:3]) == ("abc", "bca", "cab", "abc")[first]


def test_a_comparison_has_every_round_and_the_last_ones_durations() -> None:
    said: list[str] = []
    calls = iter(range(1000))
    found = compare([Contestant("a", lambda: next(calls), 30)], 3, said.append)
    rounds, durations = found["a"]
    assert len(rounds) == 3
    assert len(durations) == 30
    assert next(calls) == 3 * 30 + 3, "and a tenth of a round that is not counted"
    assert said == ["Round 1 of 3", "Round 2 of 3", "Round 3 of 3"]


def test_a_call_that_fails_ends_the_measurement() -> None:
    with pytest.raises(ZeroDivisionError):
        one_round([Contestant("a", lambda: 1 // 0, 5)])
    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="A call of 2 threads failed"):
        throughput(lambda: 1 // 0, 2, 0.01)


def test_nothing_is_collected_inside() -> None:
    with no_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_threads_are_counted_together() -> None:
    assert throughput(lambda: None, 3, 0.01) > 0
