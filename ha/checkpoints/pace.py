"""Pace: a bound on how many calls of a store are begun in a second, for work that nobody waits for."""

import threading

from store.clock import BOOT_CLOCK, Clock


class Pace:
    """Lets calls begin one after the other, evenly; safe to use from several threads."""

    def __init__(self, rate: float, clock: Clock = BOOT_CLOCK) -> None:
        """Nothing has begun yet; ``rate`` is the number of calls in a second."""
        self._clock = clock
        self._gap = 1 / rate
        self._lock = threading.Lock()
        self._next = float("-inf")

    def wait(self) -> None:
        """Wait until the next call may begin."""
        with self._lock:
            at = self._clock.now()
            begins = max(at, self._next)
            self._next = begins + self._gap
        if begins > at:
            self._clock.sleep(begins - at)
