"""The warmer: keeps jobs warm by watching each of them, one thread a job, and passes every look to subscribers.

A job is kept for as long as somebody asks for it, and a while longer.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from leader.errors import LeaderError
from leader.lookup.answers import Look, Looks
from store.clock import BOOT_CLOCK, Clock

MAX_JOBS = 256
"""Jobs that are kept at most, since each costs a sleeping thread. Readers ask the stores for the others."""

KEPT_FOR = 300.0
"""Seconds after which a job without readers is forgotten. Readers say once a minute that they ask for it."""

_log = logging.getLogger("ha")


@dataclass(eq=False)
class _WarmJob:
    wanted_at: float
    stop: threading.Event = field(default_factory=threading.Event)
    latest: Look | None = None


class Warmer:
    """The jobs that are kept warm, and the last look at each of them."""

    def __init__(
        self, reader: Looks, every: float, on_look: Callable[[str, Look], None], clock: Clock = BOOT_CLOCK
    ) -> None:
        """Keep no job yet."""
        # `reader`: watches the jobs; it must not read the agent's own snapshots. `every`: seconds after which each job
        # is looked up again at the latest. `on_look`: called with each job and look, on that job's thread; an error of
        # it is logged. `clock`: the host's boot clock, unless in a test.
        self._reader = reader
        self._every = every
        self._on_look = on_look
        self._clock = clock
        self._jobs: dict[str, _WarmJob] = {}
        self._lock = threading.Lock()
        self._full = False
        self._closed = False

    @property
    def jobs(self) -> list[str]:
        """The jobs that are kept now."""
        with self._lock:
            return list(self._jobs)

    def want(self, job: str) -> bool:
        """Keep this job, because somebody asks for it; returns whether there is room, and a thread."""
        with self._lock:
            if self._closed:
                return False
            kept = self._jobs.get(job)
            if kept is not None:
                kept.wanted_at = self._clock.now()
                return True
            if len(self._jobs) >= MAX_JOBS:
                if not self._full:
                    self._full = True
                    _log.warning("%d jobs are kept warm; %s and others are asked of the stores.", MAX_JOBS, job)
                return False
            kept = self._jobs[job] = _WarmJob(self._clock.now())  # before the first look, which is told if it is kept
            try:
                threading.Thread(target=self._watch, args=(job, kept), name=f"ha-warm-{job}", daemon=True).start()
            except RuntimeError as error:
                del self._jobs[job]
                _log.warning("%s is asked of the stores each time: %s.", job, error)
                return False
        return True

    def keeps(self, job: str) -> bool:
        """Whether the job is kept now."""
        return job in self._jobs

    def latest(self, job: str) -> Look | None:
        """Return the last look that was answered; None if the job is not kept, or there was no answer yet."""
        kept = self._jobs.get(job)
        return kept.latest if kept is not None else None

    def forget(self) -> list[str]:
        """Drop the jobs without a recent reader, and return them."""
        before = self._clock.now() - KEPT_FOR
        with self._lock:
            old = [job for job, kept in self._jobs.items() if kept.wanted_at < before]
            for job in old:
                self._jobs.pop(job).stop.set()
            self._full = self._full and not old
        return old

    def close(self) -> None:
        """Drop all jobs; does not wait for looks that are under way."""
        with self._lock:
            self._closed = True
            for kept in self._jobs.values():
                kept.stop.set()
            self._jobs.clear()

    def _watch(self, job: str, kept: _WarmJob) -> None:
        try:
            for look in self._reader.looks(job, kept.stop, every=self._every):
                if kept.stop.is_set():
                    return
                if look.reached:
                    kept.latest = look
                self._pass_on(job, look)
        except LeaderError:
            _log.exception("%s is no longer kept warm.", job)

    def _pass_on(self, job: str, look: Look) -> None:
        try:
            self._on_look(job, look)
        except Exception:  # noqa: BLE001  # a look that cannot be passed on must not be the last
            _log.exception("The answer about %s could not be passed on.", job)


class Subscriptions:
    """Callbacks by job, each called when there may be news; they find out themselves what it is. For any thread."""

    def __init__(self) -> None:
        self._callbacks: dict[str, set[Callable[[], None]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def subscribe(self, job: str, callback: Callable[[], None]) -> Iterator[None]:
        """Have ``callback`` called after every look at the job, on any thread; it must not block."""
        with self._lock:
            self._callbacks.setdefault(job, set()).add(callback)
        try:
            yield
        finally:
            with self._lock:
                self._callbacks[job].discard(callback)
                if not self._callbacks[job]:
                    del self._callbacks[job]

    def notify(self, job: str) -> None:
        """Call the job's callbacks."""
        with self._lock:
            callbacks = list(self._callbacks.get(job, ()))
        for callback in callbacks:
            callback()

    @property
    def jobs(self) -> list[str]:
        """The jobs that have a callback."""
        with self._lock:
            return list(self._callbacks)
