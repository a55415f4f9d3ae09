"""When to look at a lease that HDFS alone carries: its holder renews it in a rhythm, and that can be learnt.

What counts is how late a renewal is seen, since the wait for the lease's end begins there. Who looks every ``poll``
seconds sees it that late at most. Who has once seen a renewal as exactly as that looks next when the holder is about to
renew again: just as late, and asks a third as often.
"""

from leader.timing import Timing

EARLY = 6
"""Drifts by which a renewal is looked for before it is due. Two clocks differ by two of them; the rest makes whoever
comes late come less late each time, until a look is in vain: that shows where the renewal is."""

TRUSTED = 4
"""Renewals that are seen without a look in vain and still believed to be in rhythm: trouble changes it."""

CLOSELY = 2
"""Looks that follow quickly when a renewal is due."""

EXACT = 1.5
"""Polls: two looks that are not further apart tell when a renewal was. Answers take some time, too."""


class Rhythm:
    """What is known of the moments at which a lease is renewed."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._looked_at = float("-inf")
        self._known = False
        self._in_vain = 0
        self._hits = 0

    def looked(self, at: float, *, renewed: bool) -> None:
        """The lease was read at that time; ``renewed``: it had changed since it was read before."""
        apart = at - self._looked_at
        self._looked_at = at
        if not renewed:
            self._in_vain += 1
            self._known = self._known and self._in_vain <= CLOSELY
            return
        exactly = apart <= EXACT * self._timing.poll
        self._hits = 0 if exactly else self._hits + 1
        self._known = exactly or (self._known and self._hits <= TRUSTED and apart <= self._timing.renewal)
        self._in_vain = 0

    def pause(self) -> float:
        """Seconds until the next look."""
        if not self._known:
            return self._timing.poll
        return self._timing.retry if self._in_vain else self._timing.renewal * (1 - EARLY * self._timing.drift)
