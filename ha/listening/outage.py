"""Outage: what does not work for a while, in the log: a line when it begins, one a minute, and one when it ends."""

import logging
from collections.abc import Callable

from ha.listening.throttle import EVERY_S
from store.clock import BOOT_CLOCK, Clock

QUIET_S = 5.0  # it is over if it has not failed for so long: what flips between both is one outage


class Outage:
    """One thing that works or does not. Its caller says at each try which, or looks from time to time.

    Not safe from several threads at once.
    """

    def __init__(self, log: logging.Logger, what: Callable[[], str], clock: Clock = BOOT_CLOCK) -> None:
        """Nothing has failed yet; ``what`` returns the subject of each sentence."""
        self._log, self._what, self._clock = log, what, clock
        self._since: float | None = None
        self._told = self._failed_at = 0.0
        self._works_at: float | None = None

    @property
    def lasts(self) -> bool:
        """Whether it has begun and has not ended."""
        return self._since is not None

    def fails(self, why: object) -> None:
        """It has failed now."""
        at = self._clock.now()
        self._failed_at, self._works_at = at, None
        if self._since is None:
            self._since = self._told = at
            self._log.warning("%s does not work: %s", self._what(), why)
        elif at >= self._told + EVERY_S:
            self._told = at
            self._log.warning("%s has not worked for %.0f s: %s", self._what(), at - self._since, why)

    def works(self) -> bool:
        """It works now; returns whether that has ended an outage."""
        if self._since is None:
            return False
        at = self._clock.now()
        if self._works_at is None:
            self._works_at = at
        if at < self._failed_at + QUIET_S:
            return False
        self._log.warning("%s works again, after %.0f s.", self._what(), self._works_at - self._since)
        self._since = self._works_at = None
        return True
