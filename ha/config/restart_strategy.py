"""Restart strategies, as in Flink: they decide whether and when a command that failed is started again.

They do NOT decide who leads. A command is started again only while its leadership lasts; when the strategy gives up,
the leadership is given back. Each leadership begins with a new strategy, which has seen no failure.

There is no I/O here: the caller passes the time of a failure and the dice. One thing is simpler than in Flink: a
command that waits to be started again cannot fail meanwhile, so no two failures count as one.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from leader.errors import InvalidSettings
from leader.timing import LONGEST

INFINITE = 2**31 - 1
"""The greatest number of attempts that can be set; Flink uses it for "no limit"."""

SHORTEST_BACKOFF = 0.001
"""Seconds: Flink's least backoff. A backoff of 0 would never grow."""

FARTHEST_BACKOFF = 1e100
"""Seconds: no backoff grows beyond this. Without a limit it could become infinite, and a jitter of it not a number."""

Dice = Callable[[], float]
"""Returns a random number from 0 to 1."""


class RestartStrategy(Protocol):
    """Decides after every failure of one command.

    Constructors raise :class:`leader.errors.InvalidSettings` if an option is out of range.
    """

    def failed(self, at: float) -> float | None:
        """Count a failure; returns the seconds after which the command is started again, or None to give up.

        Args:
            at: seconds of a clock that never goes back.
        """


class NoRestart:
    """``none``: every failure ends the leadership."""

    def failed(self, at: float) -> float | None:
        """See :class:`RestartStrategy`."""
        del at
        return None


class FixedDelay:
    """``fixed-delay``: a number of restarts, each after the same delay."""

    def __init__(self, attempts: int, delay: float) -> None:
        """Allow ``attempts`` restarts, each after ``delay`` seconds."""
        self._left = _whole("fixed-delay.attempts", attempts, 0)
        self._delay = _seconds("fixed-delay.delay", delay, 0)

    def failed(self, at: float) -> float | None:
        """See :class:`RestartStrategy`."""
        del at
        if self._left == 0:
            return None
        self._left -= 1
        return self._delay


class FailureRate:
    """``failure-rate``: restarts as long as no interval has more failures than its maximum."""

    def __init__(self, max_failures_per_interval: int, failure_rate_interval: float, delay: float) -> None:
        """Begin without a failure; times are in seconds."""
        self._most = _whole("failure-rate.max-failures-per-interval", max_failures_per_interval, 1)
        self._interval = _seconds("failure-rate.failure-rate-interval", failure_rate_interval, SHORTEST_BACKOFF)
        self._delay = _seconds("failure-rate.delay", delay, 0)
        self._failures: deque[float] = deque()

    def failed(self, at: float) -> float | None:
        """See :class:`RestartStrategy`."""
        self._failures.append(at)
        while at - self._failures[0] > self._interval:
            self._failures.popleft()
        return self._delay if len(self._failures) <= self._most else None


class ExponentialDelay:
    """``exponential-delay``: a delay that grows with each failure, until the command has run for long enough."""

    def __init__(
        self,
        initial_backoff: float,
        max_backoff: float,
        backoff_multiplier: float,
        jitter_factor: float,
        reset_backoff_threshold: float,
        attempts_before_reset_backoff: int,
        dice: Dice,
    ) -> None:
        """Begin with the initial backoff.

        Args:
            initial_backoff: seconds.
            max_backoff: seconds.
            backoff_multiplier: each failure multiplies the backoff by it; greater than 1.
            jitter_factor: the greatest part of the backoff, from 0 to 1, that is added or subtracted.
            reset_backoff_threshold: seconds without a failure after which the backoff and the count start again.
            attempts_before_reset_backoff: the greatest number of restarts until then.
            dice: rolled for each delay.
        """
        self._initial = _seconds("exponential-delay.initial-backoff", initial_backoff, SHORTEST_BACKOFF)
        self._maximum = _seconds("exponential-delay.max-backoff", max_backoff, SHORTEST_BACKOFF)
        self._threshold = _seconds(
            "exponential-delay.reset-backoff-threshold", reset_backoff_threshold, SHORTEST_BACKOFF
        )
        self._most = _whole("exponential-delay.attempts-before-reset-backoff", attempts_before_reset_backoff, 1)
        if self._initial > self._maximum:
            raise InvalidSettings(
                f"restart-strategy.exponential-delay.initial-backoff ({initial_backoff:g} s) and max-backoff "
                f"({max_backoff:g} s) clash: the first delay must not be longer than the longest."
            )
        if not 1 < backoff_multiplier <= LONGEST:
            raise InvalidSettings(
                f"restart-strategy.exponential-delay.backoff-multiplier is {backoff_multiplier:g}: it must be greater "
                f"than 1 and at most {LONGEST:,}."
            )
        if not 0 <= jitter_factor <= 1:
            raise InvalidSettings(
                f"restart-strategy.exponential-delay.jitter-factor is {jitter_factor:g}: it must be from 0 to 1."
            )
        self._multiplier, self._jitter, self._dice = backoff_multiplier, jitter_factor, dice
        self._attempts, self._backoff, self._restarted = 0, self._initial, float("-inf")

    def failed(self, at: float) -> float | None:
        """See :class:`RestartStrategy`."""
        if at - self._restarted >= self._threshold:
            self._attempts, self._backoff = 0, self._initial
        if self._attempts == self._most:
            return None
        jittered = self._backoff * (1 + self._jitter * (2 * self._dice() - 1))
        delay = max(self._initial, min(jittered, self._maximum))
        self._attempts += 1
        self._backoff = min(self._backoff * self._multiplier, FARTHEST_BACKOFF)
        self._restarted = at + delay
        return delay


def _whole(name: str, value: int, least: int) -> int:
    if not least <= value <= INFINITE:
        raise InvalidSettings(f"restart-strategy.{name} is {value}: it must be from {least} to {INFINITE:,}.")
    return value


def _seconds(name: str, value: float, least: float) -> float:
    if not least <= value <= LONGEST:
        raise InvalidSettings(
            f"restart-strategy.{name} is {value:g} s: it must be from {least:g} to {LONGEST:,} seconds."
        )
    return value
