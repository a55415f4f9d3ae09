"""Whether and when a command that failed is started again: Flink's restart strategies, under the names of its options.

They do NOT decide who leads: a command is started again only while the leadership lasts, and "no more" means that the
leadership is given back. Each leadership has a strategy of its own, which has seen no failure yet.

No I/O: the time of a failure is given, and so are the dice. One thing is simpler than in Flink: a command that waits to
be started again cannot fail meanwhile, so there are no failures to count as one.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from leader.errors import InvalidSettings
from leader.timing import LONGEST

INFINITE = 2**31 - 1
"""Attempts: what Flink means by infinite, and the most that can be set."""

SHORTEST_BACKOFF = 0.001
"""Seconds: Flink's least backoff, so that it grows at all."""

FARTHEST_BACKOFF = 1e100
"""Seconds: no backoff grows beyond, whatever its maximum; infinity times a jitter would be no number."""

Dice = Callable[[], float]
"""Rolls a number from 0 to 1."""


class RestartStrategy(Protocol):
    """Told of every failure of one command."""

    def failed(self, at: float) -> float | None:
        """Note a failure; returns the seconds after which to start the command again, or None: no more.

        Args:
            at: seconds by a clock that never goes back.
        """


class NoRestart:
    """``none``: every failure ends the leadership."""

    def failed(self, at: float) -> float | None:
        """See :class:`RestartStrategy`."""
        del at
        return None


class FixedDelay:
    """``fixed-delay``: so many times, after the same delay each."""

    def __init__(self, attempts: int, delay: float) -> None:
        """Begin to count; ``delay`` is in seconds.

        Raises:
            InvalidSettings: one of them is out of range.
        """
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
    """``failure-rate``: as long as no interval sees more failures than its maximum."""

    def __init__(self, max_failures_per_interval: int, failure_rate_interval: float, delay: float) -> None:
        """Begin to count; times are in seconds.

        Raises:
            InvalidSettings: one of them is out of range.
        """
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
    """``exponential-delay``: after a delay that grows with each failure, until the command has run for long enough."""

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
            backoff_multiplier: of the backoff, for each failure; greater than 1.
            jitter_factor: the part of the backoff, from 0 to 1, that is at most added or subtracted.
            reset_backoff_threshold: seconds without a failure after which all begins anew.
            attempts_before_reset_backoff: restarts until then.
            dice: rolled for each delay.

        Raises:
            InvalidSettings: one of them is out of range, or the initial backoff is longer than the maximum.
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
