"""Throttled log lines: one that repeats is written once a minute, and then says how often it was left out."""

import logging

from store.clock import BOOT_CLOCK, Clock

EVERY_S = 60.0  # seconds between two lines of one kind
MOST_KINDS = 100  # kinds of lines that are remembered; then all are forgotten, and each is written once more


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
