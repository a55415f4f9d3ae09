"""Alarm: one thread that ends overdue calls, whose callers do not wait themselves."""

import heapq
import itertools
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from store.clock import now

T = TypeVar("T")

_FEW = 1000  # ended entries stay in the heap until they are due: cheaper than looking for them, if there are few


class Alarm(Generic[T]):
    """Rings for each item at its time, from a daemon thread that starts with the first item."""

    # `ring` must not block; `ended`, whether an item needs no ringing, may be called under the alarm's lock.

    def __init__(self, ring: Callable[[T], None], ended: Callable[[T], bool]) -> None:
        self._ring = ring
        self._ended = ended
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, T]] = []
        self._numbers = itertools.count()
        self._running = self._closed = False
        self._limit = _FEW

    def add(self, due: float, item: T) -> bool:
        """Ring for the item at ``due`` (boot-clock seconds); return False if no thread could be started."""
        with self._changed:
            if not self._running:
                try:
                    threading.Thread(target=self._run, name="store-alarm", daemon=True).start()
                except RuntimeError:
                    return False
                self._running = True
            if len(self._heap) >= self._limit:
                self._heap = [each for each in self._heap if not self._ended(each[2])]
                heapq.heapify(self._heap)
                self._limit = 2 * max(_FEW, len(self._heap))
            entry = (due, next(self._numbers), item)
            heapq.heappush(self._heap, entry)
            if self._heap[0] is entry:
                self._changed.notify()
        return True

    def close(self) -> None:
        """Let the thread go once it has rung for all that has not ended."""
        with self._changed:
            self._closed = True
            self._heap = [each for each in self._heap if not self._ended(each[2])]
            heapq.heapify(self._heap)
            self._changed.notify()

    def _run(self) -> None:
        while (item := self._next()) is not None:
            self._ring(item)

    def _next(self) -> T | None:
        with self._changed:
            while True:
                if not self._heap:
                    if self._closed:
                        self._running = False
                        return None
                    self._changed.wait()
                    continue
                rest = self._heap[0][0] - now()
                if rest <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(min(rest, threading.TIMEOUT_MAX))
