"""When to look at a lease that HDFS alone carries: its holder renews it in a rhythm, and that can be learnt.

What counts is how late a renewal is seen, since the wait for the lease's end begins there. Who looks every ``poll``
seconds sees it that late at most. Who has seen one as exactly as that looks next just before the holder renews again,
in vain, and then quickly until it has: that is more exact, and half as many looks. A look that is not in vain shows
that the rhythm is another one by now.
"""

from leader.timing import Timing

EARLY = 3
"""Drifts by which a renewal is looked for before it is due: two clocks differ by two."""

CLOSELY = 3
"""Looks that follow each other quickly when a renewal is due: the first is in vain, and so is the next now and then."""

EXACT = 1.5
"""Polls: two looks that are not further apart tell when a renewal was. Answers take some time, too."""


class Rhythm:
    """What is known of the moments at which a lease is renewed."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._looked_at = float("-inf")
        self._known = False
        self._in_vain = 0

    def looked(self, at: float, *, renewed: bool) -> None:
        """The lease was read at that time; ``renewed``: it had changed since it was read before."""
        apart = at - self._looked_at
        self._looked_at = at
        if renewed:
            self._known = apart <= EXACT * self._timing.poll
            self._in_vain = 0
        else:
            self._in_vain += 1
            self._known = self._known and self._in_vain <= CLOSELY

    def pause(self) -> float:
        """Seconds until the next look."""
        if not self._known:
            return self._timing.poll
        if self._in_vain:
            return self._timing.retry
        return self._timing.renewal * (1 - EARLY * self._timing.drift) - self._timing.retry
