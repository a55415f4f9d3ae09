"""Crew: threads that are made at the start, for what must be done although the host has no more threads later.

A thread that cannot be had raises RuntimeError in whoever wants it. On the deciding thread of a sidecar that would end
the sidecar, and with it a job that runs. So what it wants done elsewhere is handed to threads that are there already.
"""

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress

_log = logging.getLogger("ha")


class Crew:
    """Calls functions on other threads, side by side. It takes more threads if all are busy and the host has some."""

    def __init__(self, name: str, size: int) -> None:
        """Start ``size`` threads; RuntimeError if the host does not have them."""
        self._name = name
        self._tasks: queue.SimpleQueue[tuple[Callable[[], object], threading.Event] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._size = 0  # threads that have not been told to leave
        self._free = 0  # threads less the functions that were handed over and have not returned
        for _ in range(size):
            self._hire()

    def __call__(self, task: Callable[[], object]) -> threading.Event:
        """Have a function called; returns an event that is set once it has returned. What it raises is logged."""
        done = threading.Event()
        with self._lock:
            self._free -= 1
            short = self._free < 0
        if short:
            with suppress(RuntimeError):  # it waits until one of the others is free
                self._hire()
        self._tasks.put((task, done))
        return done

    def close(self) -> None:
        """Let the threads go, each once nothing is left that was handed over before; returns at once."""
        with self._lock:
            leave, self._size = self._size, 0
            self._free -= leave
        for _ in range(leave):
            self._tasks.put(None)

    def _hire(self) -> None:
        threading.Thread(target=self._work, name=self._name, daemon=True).start()
        with self._lock:
            self._size += 1
            self._free += 1

    def _work(self) -> None:
        while (taken := self._tasks.get()) is not None:
            task, done = taken
            try:
                task()
            except Exception:  # noqa: BLE001  # the others go on
                _log.exception("%s: an unforeseen error.", self._name)
            finally:
                with self._lock:
                    self._free += 1
                done.set()
