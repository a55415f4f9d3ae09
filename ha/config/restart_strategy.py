"""Restart strategies, those of Flink that we have: they decide whether and when a command that failed is started again.

They do NOT decide who leads. A command is started again only while its leadership lasts; when the strategy gives up,
the leadership is given back. Each leadership begins with a new strategy, which has seen no failure.

There is no I/O here: the caller passes the time of a failure and the dice. One thing is simpler than in Flink: a
command that waits to be started again cannot fail meanwhile, so no two failures count as one.
"""

from collections.abc import Callable
from typing import Protocol

INFINITE = 2**31 - 1  # the greatest number of attempts that can be set; Flink uses it for "no limit"

SHORTEST_BACKOFF, LONGEST_BACKOFF = 0.001, 60.0
"""Seconds: Flink's least backoff, because one of 0 would never grow, and its default of the greatest."""

RESET_AFTER_S = 3600.0  # Flink's default: after this time without a failure backoff and count begin again

MULTIPLIER, JITTER = 1.5, 0.1
"""Flink's defaults: each failure multiplies the backoff, and such a part of it is added or subtracted at random."""

Dice = Callable[[], float]  # returns a random number from 0 to 1


class RestartStrategy(Protocol):
    """Decides after every failure of one command."""

    def failed(self, at: float) -> float | None:
        """Count a failure; returns the seconds after which the command is started again, or None to give up."""
        # `at`: seconds of a clock that never goes back.


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
        self._left, self._delay = attempts, delay

    def failed(self, at: float) -> float | None:
        """See :class:`RestartStrategy`."""
        del at
        if self._left == 0:
            return None
        self._left -= 1
        return self._delay


class ExponentialDelay:
    """``exponential-delay``: a delay that grows with each failure, until the command has run for long enough."""

    def __init__(
        self,
        initial_backoff: float,
        max_backoff: float,
        reset_backoff_threshold: float,
        attempts_before_reset_backoff: int,
        dice: Dice,
    ) -> None:
        """Begin with the initial backoff, in seconds, or the least that there is; dice are rolled for each delay."""
        self._initial = max(initial_backoff, SHORTEST_BACKOFF)
        self._maximum = max(self._initial, max_backoff)
        self._threshold, self._most = reset_backoff_threshold, attempts_before_reset_backoff
        self._dice = dice
        self._attempts, self._backoff, self._restarted = 0, self._initial, float("-inf")

    def failed(self, at: float) -> float | None:
        """See :class:`RestartStrategy`."""
        if at - self._restarted >= self._threshold:
            self._attempts, self._backoff = 0, self._initial
        if self._attempts == self._most:
            return None
        jittered = self._backoff * (1 + JITTER * (2 * self._dice() - 1))
        delay = max(self._initial, min(jittered, self._maximum))
        self._attempts += 1
        self._backoff = min(self._backoff * MULTIPLIER, 2 * self._maximum)  # from there no jitter reaches the maximum
        self._restarted = at + delay
        return delay
