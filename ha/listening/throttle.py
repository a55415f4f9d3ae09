"""Log lines that repeat: one of each kind a minute; an outage also has one when it begins, and one when it ends."""

import logging
from collections.abc import Callable

from store.clock import BOOT_CLOCK, Clock

EVERY_S = 60.0  # seconds between two lines of one kind
MOST_KINDS = 100  # kinds of lines that are remembered; then all are forgotten, and each is written once more
QUIET_S = 5.0  # an outage is over if it has not failed for so long: what flips between both is one outage


class Throttle(logging.Filter):
    """Lets one line of each kind pass in :data:`EVERY_S`. The kind is the first line of the text without its values."""

    def __init__(self, clock: Clock = BOOT_CLOCK) -> None:
        """Nothing has been written yet; ``clock`` is the host's boot clock, unless in a test."""
        super().__init__()
        self._clock = clock
        self._next: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line; see :class:`logging.Filter`."""
        kind, at = f"{record.name}:{str(record.msg).partition(chr(10))[0]}", self._clock.now()
        if at < self._next.get(kind, at):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return False
        if len(self._next) >= MOST_KINDS:
            self._next.clear()
            self._left_out.clear()
        self._next[kind] = at + EVERY_S
        left_out = self._left_out.pop(kind, 0)
        if left_out:
            record.msg = f"{record.getMessage()} ({left_out:,} more like this were left out.)"
            record.args = ()
        return True


THROTTLE = Throttle()  # the one of this process


def throttle(name: str) -> None:
    """Throttle all lines of one logger; once or several times."""
    logging.getLogger(name).addFilter(THROTTLE)


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
