"""Virtual time: one heap of scheduled calls and one random generator. Nothing really waits."""

import heapq
import random
from collections.abc import Callable
from itertools import count

MANY, BUSY = 20_000, 0.5
"""So many calls in so few seconds are made only by a process that wakes up again and again, and does nothing."""


class Call:
    """A scheduled call."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class World:
    """True time, which no process in the simulation sees, and the order of all events."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0
        self.seed = seed
        self.random = random.Random(seed)  # noqa: S311  # replayed, not secret
        self._calls: list[tuple[float, int, Call]] = []
        self._count = count(1)
        self._looked_at = -1.0

    def at(self, when: float, callback: Callable[[], None]) -> Call:
        call, number = Call(max(when, self.now), callback), next(self._count)
        if number % MANY == 0:
            assert self.now > self._looked_at + BUSY, "a process wakes up again and again, and does nothing"
            self._looked_at = self.now
        heapq.heappush(self._calls, (call.when, number, call))
        return call

    def after(self, delay: float, callback: Callable[[], None]) -> Call:
        return self.at(self.now + delay, callback)

    def step(self) -> bool:
        """Make the next call; False if there is none."""
        return self._step(float("inf"))

    def run(self, seconds: float, after_each: Callable[[], object] = lambda: None) -> None:
        """Let that much true time pass; ``after_each`` is called after each call, at its time."""
        end = self.now + seconds
        while self._step(end):
            after_each()
        self.now = end

    def _step(self, end: float) -> bool:
        """Make the next call that is not cancelled; False if there is none until then."""
        while self._calls and self._calls[0][0] <= end:
            when, _, call = heapq.heappop(self._calls)
            if call.callback is not None:
                self.now = when
                call.callback()
                return True
        return False

    def dice(self, name: str) -> random.Random:
        """Return a random generator of one's own. Other draws do not change it, so a plan can be shrunk."""
        return random.Random(f"{self.seed}/{name}")  # noqa: S311  # replayed, not secret

    def uuid(self) -> str:
        digits = f"{self.random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
