"""DrainedHost: a process that begins looks whether its host is drained, and contends only when it knows.

Who cannot see an order to stay away stays away: it may be there.
"""

import logging
import threading
from collections.abc import Callable

from leader.contender.runtime import Runtime
from leader.job.barring import bar_if_drained
from leader.layout.bar import Bar
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import now, wall
from store.errors import PermissionDenied
from store.outcome import Outcome

AGAIN_S = 30.0  # before a refusal is tried again: it may have been mended

_log = logging.getLogger("ha")


class DrainedHost:
    """What one process knows of the order, by job."""

    def __init__(self, runtime: Runtime, files: BoundedFiles, timing: Timing, contender: str) -> None:
        """Look for nothing yet."""
        self._runtime, self._files, self._timing, self._contender = runtime, files, timing, contender
        self._lock = threading.Lock()
        self._blind: dict[str, str] = {}
        self.looked: set[str] = set()
        """Jobs of which it is known; on the runtime's thread."""
        self._waiting: dict[str, Callable[[], object]] = {}

    def unknown(self, job: str) -> str:
        """Return why it is not known, as a sentence; empty if it is, or was not asked."""
        with self._lock:
            return self._blind.get(job, "")

    def look(self, job: str) -> None:
        """Bar this process from the job in the background if its host is drained; asked until there is an answer."""
        self._files.submit(
            "drained",
            lambda driver: bar_if_drained(driver, job, self._contender, wall()),
            self._timing.call_timeout,
            lambda outcome: self._runtime.post(lambda: self._take(job, outcome)),
        )

    def then(self, job: str, act: Callable[[], object]) -> None:
        """Act as soon as it is known; on the runtime's thread."""
        if job in self.looked:
            act()
        else:
            self._waiting[job] = act

    def forget(self, job: str) -> None:
        """Act no more; on the runtime's thread."""
        self._waiting.pop(job, None)

    def _take(self, job: str, outcome: Outcome[Bar | None]) -> None:
        if not outcome.done:
            self._cannot_look(job, f"It is not known whether this host is drained: {outcome.error}.")
            pause = AGAIN_S if isinstance(outcome.error, PermissionDenied) else self._timing.retry
            self._runtime.call_at(now() + pause, lambda: self.look(job))
            return
        with self._lock:
            self._blind.pop(job, None)
        if (order := outcome.result()) is not None:
            _log.warning("%s: this host is %s, so it takes nothing over.", job, order)
        self.looked.add(job)
        if (act := self._waiting.pop(job, None)) is not None:
            act()

    def _cannot_look(self, job: str, sentence: str) -> None:
        with self._lock:
            told = job in self._blind
            self._blind[job] = sentence
        if not told:
            _log.warning("%s: %s It takes nothing over before that is known.", job, sentence)
