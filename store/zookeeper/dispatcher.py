"""Dispatcher: the one thread that runs all callbacks and timers of a client."""

import heapq
import logging
import threading
from collections.abc import Callable
from itertools import count
from queue import Empty, SimpleQueue

from store.clock import now

log = logging.getLogger(__name__)

Work = Callable[[], None]

_FIRST_SWEEP = 256  # timers; with fewer, sweeping out the cancelled ones is not worth it


class Timer:
    """Work that is due at a time, unless cancelled."""

    __slots__ = ("cancelled", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.cancelled = False

    def cancel(self) -> None:
        """Forget it; safe to call from any thread, and more than once."""
        self.cancelled = True


class Dispatcher:
    """Runs work in the order it was posted, and timers when they are due, all in one daemon thread."""

    # Work must not block: it delays everything behind it. An error that it raises is logged, and does no further harm.

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._timers: list[tuple[float, int, Timer]] = []
        self._sweep_at = _FIRST_SWEEP
        self._order = count()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; call it once."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def post(self, work: Work) -> None:
        """Run the work soon; never blocks. Work that is posted after :meth:`stop` never runs."""
        self._queue.put(work)

    def at(self, due: float, work: Work) -> Timer:
        """Run the work at a time of the boot clock (seconds); never blocks."""
        timer = Timer(work)
        # Timers belong to the thread. The queue also wakes it, in case this timer is the next one due.
        self.post(lambda: self._add(due, timer))
        return timer

    def stop(self, timeout: float) -> None:
        """Run the work posted so far, drop the timers, end the thread; wait for that at most ``timeout`` seconds."""
        self._queue.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _add(self, due: float, timer: Timer) -> None:
        if timer.cancelled:
            return
        if len(self._timers) >= self._sweep_at:  # most calls end long before their deadline
            self._timers = [entry for entry in self._timers if not entry[2].cancelled]
            heapq.heapify(self._timers)
            self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._timers))
        heapq.heappush(self._timers, (due, next(self._order), timer))

    def _run(self) -> None:
        while True:
            wait = max(0.0, self._timers[0][0] - now()) if self._timers else None
            try:
                work = self._queue.get(timeout=wait)
            except Empty:
                pass
            else:
                if work is None:
                    return
                self._do(work)
            while self._timers and self._timers[0][0] <= now():
                timer = heapq.heappop(self._timers)[2]
                if not timer.cancelled:
                    self._do(timer.work)

    def _do(self, work: Work) -> None:
        try:
            work()
        except Exception:
            log.exception("A callback failed; the others go on.")
