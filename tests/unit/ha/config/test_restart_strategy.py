"""Restart strategies: the examples of Flink's documentation, and a simple model of each over random failures."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.config.restart_strategy import (
    INFINITE,
    JITTER,
    MULTIPLIER,
    ExponentialDelay,
    FixedDelay,
    NoRestart,
    RestartStrategy,
)


def middle() -> float:
    """Dice that add no jitter."""
    return 0.5


def exponential(**given: Any) -> ExponentialDelay:
    defaults: dict[str, Any] = {
        "initial_backoff": 1.0,
        "max_backoff": 10.0,
        "reset_backoff_threshold": 360.0,
        "attempts_before_reset_backoff": INFINITE,
        "dice": middle,
    }
    return ExponentialDelay(**{**defaults, **given})


def run(strategy: RestartStrategy, lasted: Sequence[float]) -> list[tuple[float, float | None]]:
    """Let a command fail after each of these times in turn; returns the times and the strategy's answers."""
    at, said = 100.0, []
    for seconds in lasted:
        at += seconds
        delay = strategy.failed(at)
        said.append((at, delay))
        if delay is None:
            break
        at += delay
    return said


def delays(strategy: RestartStrategy, lasted: Sequence[float]) -> list[float | None]:
    return [delay for _, delay in run(strategy, lasted)]


def test_none_starts_nothing_again() -> None:
    assert delays(NoRestart(), [1.0]) == [None]


def test_a_fixed_delay_counts_attempts_for_ever() -> None:
    assert delays(FixedDelay(2, 10.0), [0, 1e5, 1e5]) == [10.0, 10.0, None]
    assert delays(FixedDelay(0, 10.0), [0]) == [None]


def test_an_exponential_delay_as_in_flinks_example() -> None:
    assert delays(exponential(), [1] * 8) == [1, 1.5, 2.25, 3.375, 5.0625, 7.59375, 10, 10]


@pytest.mark.parametrize(("rolled", "expected"), [(0.0, [1, 1.35, 2.025]), (1.0, [1.1, 1.65, 2.475])])
def test_jitter_is_a_part_of_the_delay_and_not_below_the_initial_one(rolled: float, expected: list[float]) -> None:
    assert delays(exponential(dice=lambda: rolled), [1] * 3) == pytest.approx(expected)


def test_a_quiet_time_after_a_restart_begins_anew() -> None:
    assert delays(exponential(), [1, 1, 359.9, 360, 1]) == [1, 1.5, 2.25, 1, 1.5]
    some = exponential(attempts_before_reset_backoff=2)
    assert delays(some, [1, 1, 360, 1, 1]) == [1, 1.5, 1, 1.5, None], "the attempts are counted anew, too"


@pytest.mark.parametrize("rolled", [0.0, 1.0])
def test_a_backoff_that_is_far_beyond_its_maximum_stays_a_number(rolled: float) -> None:
    found = delays(exponential(dice=lambda: rolled), [1] * 10_000)
    assert found[-1] == 10
    assert all(delay is not None and 1 <= delay <= 10 for delay in found)


# --- random failures, and what each strategy should say to them, worked out anew from the whole past


Model = Callable[[list[float], list[float]], float | None]
"""A model: from the times of all failures and the delays so far, it derives the answer to the last failure."""


def check(strategy: RestartStrategy, lasted: list[float], model: Model) -> None:
    failures: list[float] = []
    said: list[float] = []
    for at, delay in run(strategy, lasted):
        failures.append(at)
        expected = model(failures, said)
        assert (delay is None) == (expected is None)
        if delay is not None and expected is not None:
            assert math.isclose(delay, expected)
            said.append(delay)


# Eighths of seconds add up exactly, so that the edges of intervals are met.
def eighths(least: int, most: int) -> st.SearchStrategy[float]:
    return st.integers(least, most).map(lambda number: number / 8)


LASTED = st.lists(eighths(0, 60), max_size=40)


@given(LASTED, st.integers(0, 5), eighths(0, 80))
def test_fixed_delays_over_random_failures(lasted: list[float], attempts: int, delay: float) -> None:
    check(FixedDelay(attempts, delay), lasted, lambda failures, _: delay if len(failures) <= attempts else None)


@given(
    LASTED,
    st.tuples(eighths(1, 16), eighths(0, 80), eighths(1, 40), st.integers(1, 5)),
    st.lists(st.floats(0, 1), min_size=40, max_size=40),
)
def test_exponential_delays(lasted: list[float], options: tuple[float, float, float, int], rolls: list[float]) -> None:
    initial, more, threshold, most = options
    rolled = iter(rolls)
    strategy = ExponentialDelay(initial, initial + more, threshold, most, dice=lambda: next(rolled))

    def model(failures: list[float], said: list[float]) -> float | None:
        attempt = 0  # how many failures before this one there were since the last quiet time
        for number in range(1, len(failures)):
            quiet = failures[number] - (failures[number - 1] + said[number - 1]) >= threshold
            attempt = 0 if quiet else attempt + 1
        if attempt >= most:
            return None
        backoff = initial * MULTIPLIER**attempt
        backoff += backoff * JITTER * (2 * rolls[len(failures) - 1] - 1)
        return max(initial, min(backoff, initial + more))

    check(strategy, lasted, model)
