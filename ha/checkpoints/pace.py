"""Pace: a bound on how many calls of a store, or bytes, are begun in a second, for work without a deadline."""

import threading

from store.clock import BOOT_CLOCK, Clock


class Pace:
    """Lets work begin one piece after the other, evenly; safe to use from several threads."""

    def __init__(self, rate: float, clock: Clock = BOOT_CLOCK) -> None:
        """Nothing has begun yet; ``rate`` is the number of calls, or of bytes, in a second."""
        self._clock = clock
        self._gap = 1 / rate
        self._lock = threading.Lock()
        self._next = float("-inf")

    def wait(self, amount: float = 1) -> None:
        """Wait until the next piece may begin: so many calls or bytes, which hold back those after it."""
        with self._lock:
            at = self._clock.now()
            begins = max(at, self._next)
            self._next = begins + amount * self._gap
        if begins > at:
            self._clock.sleep(begins - at)
