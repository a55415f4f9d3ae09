"""Restart strategies: the examples of Flink's documentation, and a simple model of each over random failures."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.config.restart_strategy import INFINITE, ExponentialDelay, FailureRate, FixedDelay, NoRestart, RestartStrategy
from leader.errors import InvalidSettings


def middle() -> float:
    """Dice that add no jitter."""
    return 0.5


def exponential(**given: Any) -> ExponentialDelay:
    defaults: dict[str, Any] = {
        "initial_backoff": 1.0,
        "max_backoff": 10.0,
        "backoff_multiplier": 2.0,
        "jitter_factor": 0.1,
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


def test_a_failure_rate_is_exceeded_by_one_more_failure_within_the_interval() -> None:
    assert delays(FailureRate(2, 60.0, 1.0), [0, 10, 47.9]) == [1.0, 1.0, None]
    assert delays(FailureRate(2, 60.0, 1.0), [0, 10, 48]) == [1.0, 1.0, None], "60 s later is within it"
    assert delays(FailureRate(2, 60.0, 1.0), [0, 10, 48.1, 9]) == [1.0, 1.0, 1.0, None]
    assert delays(FailureRate(1, 60.0, 1.0), [0, 60, 60, 60]) == [1.0] * 4


def test_an_exponential_delay_as_in_flinks_example() -> None:
    assert delays(exponential(), [1] * 7) == [1, 2, 4, 8, 10, 10, 10]


@pytest.mark.parametrize(("rolled", "expected"), [(0.0, [1, 1.8, 3.6, 7.2]), (1.0, [1.1, 2.2, 4.4, 8.8])])
def test_jitter_is_a_part_of_the_delay_and_never_goes_below_the_initial_one(
    rolled: float, expected: list[float]
) -> None:
    assert delays(exponential(dice=lambda: rolled), [1] * 4) == pytest.approx(expected)


def test_a_quiet_time_after_a_restart_begins_anew() -> None:
    assert delays(exponential(), [1, 1, 359.9, 360, 1]) == [1, 2, 4, 1, 2]
    eight = exponential(attempts_before_reset_backoff=8)
    assert delays(eight, [1] * 9) == [1, 2, 4, 8, 10, 10, 10, 10, None]
    some = exponential(attempts_before_reset_backoff=2)
    assert delays(some, [1, 1, 360, 1, 1]) == [1, 2, 1, 2, None], "the attempts are counted anew, too"


@pytest.mark.parametrize("rolled", [0.0, 1.0])
def test_a_backoff_that_is_far_beyond_its_maximum_stays_a_number(rolled: float) -> None:
    strategy = exponential(backoff_multiplier=999_999.0, jitter_factor=1.0, dice=lambda: rolled)
    found = delays(strategy, [1] * 1000)
    assert found[-1] == (1 if rolled == 0 else 10)
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


@given(LASTED, st.integers(1, 5), eighths(1, 80), eighths(0, 24))
def test_failure_rates_over_random_failures(lasted: list[float], most: int, interval: float, delay: float) -> None:
    def model(failures: list[float], _: list[float]) -> float | None:
        return delay if sum(failures[-1] - each <= interval for each in failures) <= most else None

    check(FailureRate(most, interval, delay), lasted, model)


@given(
    LASTED,
    st.tuples(eighths(1, 16), eighths(0, 80), st.floats(1.01, 4), st.floats(0, 1), eighths(1, 40), st.integers(1, 5)),
    st.lists(st.floats(0, 1), min_size=40, max_size=40),
)
def test_exponential_delays_over_random_failures(
    lasted: list[float], options: tuple[float, float, float, float, float, int], rolls: list[float]
) -> None:
    initial, more, multiplier, jitter, threshold, most = options
    rolled = iter(rolls)
    strategy = ExponentialDelay(initial, initial + more, multiplier, jitter, threshold, most, dice=lambda: next(rolled))

    def model(failures: list[float], said: list[float]) -> float | None:
        attempt = 0  # how many failures before this one there were since the last quiet time
        for number in range(1, len(failures)):
            quiet = failures[number] - (failures[number - 1] + said[number - 1]) >= threshold
            attempt = 0 if quiet else attempt + 1
        if attempt >= most:
            return None
        backoff = initial * multiplier**attempt
        backoff += backoff * jitter * (2 * rolls[len(failures) - 1] - 1)
        return max(initial, min(backoff, initial + more))

    check(strategy, lasted, model)


# --- what cannot be


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: FixedDelay(-1, 1), "restart-strategy.fixed-delay.attempts is -1: it must be from 0 to"),
        (lambda: FixedDelay(2**31, 1), "it must be from 0 to 2,147,483,647."),
        (lambda: FixedDelay(1, math.nan), "restart-strategy.fixed-delay.delay is nan s: it must be from 0 to"),
        (lambda: FailureRate(0, 1, 1), "restart-strategy.failure-rate.max-failures-per-interval is 0: it must be"),
        (lambda: FailureRate(1, 0, 1), "restart-strategy.failure-rate.failure-rate-interval is 0 s: it must be"),
        (lambda: FailureRate(1, 1, math.inf), "restart-strategy.failure-rate.delay is inf s: it must be"),
        (lambda: exponential(initial_backoff=0), "exponential-delay.initial-backoff is 0 s: it must be from 0.001"),
        (lambda: exponential(max_backoff=1e9), "exponential-delay.max-backoff is 1e+09 s"),
        (lambda: exponential(initial_backoff=11), "initial-backoff (11 s) and max-backoff (10 s) clash"),
        (lambda: exponential(backoff_multiplier=1), "backoff-multiplier is 1: it must be greater than 1"),
        (lambda: exponential(jitter_factor=1.1), "jitter-factor is 1.1: it must be from 0 to 1."),
        (lambda: exponential(reset_backoff_threshold=0), "exponential-delay.reset-backoff-threshold is 0 s"),
        (lambda: exponential(attempts_before_reset_backoff=0), "attempts-before-reset-backoff is 0: it must be"),
    ],
)
def test_every_mistake_is_one_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        make()
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
