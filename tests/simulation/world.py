"""Virtual time: one heap of calls, one random generator, and nothing that waits."""

import heapq
import random
from collections.abc import Callable
from itertools import count


class Call:
    """A call in the virtual future."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class World:
    """True time, which nobody in the simulation sees, and the order of everything that happens."""

    def __init__(self, seed: int = 0) -> None:
        self.now = 0.0
        self.seed = seed
        self.random = random.Random(seed)  # noqa: S311  # replayed, not secret
        self._calls: list[tuple[float, int, Call]] = []
        self._count = count()

    def at(self, when: float, callback: Callable[[], None]) -> Call:
        call = Call(max(when, self.now), callback)
        heapq.heappush(self._calls, (call.when, next(self._count), call))
        return call

    def after(self, delay: float, callback: Callable[[], None]) -> Call:
        return self.at(self.now + delay, callback)

    def step(self) -> bool:
        """Make the next call; False if there is none."""
        return self._step(float("inf"))

    def run(self, seconds: float) -> None:
        """Let that much true time pass."""
        end = self.now + seconds
        while self._step(end):
            pass
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
        """Return dice of one's own: what others throw changes nothing, so a schedule can be shrunk."""
        return random.Random(f"{self.seed}/{name}")  # noqa: S311  # replayed, not secret

    def uuid(self) -> str:
        digits = f"{self.random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
