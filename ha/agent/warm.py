"""Keeps jobs warm: looks up each of them again and again, and hears of changes at once. One thread a job.

A job is kept for as long as somebody asks for it, and a while longer.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from leader.answers import Look
from leader.errors import LeaderError
from store.clock import BOOT_CLOCK, Clock

MAX_JOBS = 256
"""Jobs that are kept at most: each costs a thread that sleeps. Others are asked for by whoever wants to know."""

KEPT_FOR = 300.0
"""Seconds after which a job is forgotten that nobody has asked for; readers say that they ask once a minute."""

_log = logging.getLogger("ha")

Told = Callable[[str, Look], None]


class Looks(Protocol):
    """What is asked of a :class:`leader.reader.Reader`."""

    def looks(
        self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = float("inf")
    ) -> Iterator[Look]:
        """Look at once, after every change that is heard of, and after ``every`` seconds at the latest."""


@dataclass(eq=False)
class _Kept:
    wanted_at: float
    stop: threading.Event = field(default_factory=threading.Event)
    latest: Look | None = None


class Warm:
    """The jobs that are kept warm, and what was found last of each."""

    def __init__(self, reader: Looks, every: float, told: Told, clock: Clock = BOOT_CLOCK) -> None:
        """Keep none yet.

        Args:
            reader: looks them up; without snapshots of its own.
            every: seconds after which each job is looked up again at the latest.
            told: called with each job and look, on that job's thread; what it raises ends nothing.
            clock: the host's boot clock, unless in a test.
        """
        self._reader = reader
        self._every = every
        self._told = told
        self._clock = clock
        self._jobs: dict[str, _Kept] = {}
        self._lock = threading.Lock()
        self._full = False
        self._closed = False

    @property
    def jobs(self) -> list[str]:
        """The jobs that are kept now."""
        with self._lock:
            return list(self._jobs)

    def want(self, job: str) -> bool:
        """Somebody asks for this job; returns whether it is kept warm."""
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
            kept = self._jobs[job] = _Kept(self._clock.now())
        threading.Thread(target=self._keep, args=(job, kept), name=f"ha-warm-{job}", daemon=True).start()
        return True

    def keeps(self, job: str) -> bool:
        """Whether the job is kept now."""
        return job in self._jobs

    def latest(self, job: str) -> Look | None:
        """The last look that was answered; None if the job is not kept, or there was none yet."""
        kept = self._jobs.get(job)
        return kept.latest if kept is not None else None

    def forget(self) -> list[str]:
        """Let go of the jobs that nobody has asked for lately, and return them."""
        before = self._clock.now() - KEPT_FOR
        with self._lock:
            old = [job for job, kept in self._jobs.items() if kept.wanted_at < before]
            for job in old:
                self._jobs.pop(job).stop.set()
            self._full = self._full and not old
        return old

    def close(self) -> None:
        """Look up nothing more; does not wait for looks that are under way."""
        with self._lock:
            self._closed = True
            for kept in self._jobs.values():
                kept.stop.set()
            self._jobs.clear()

    def _keep(self, job: str, kept: _Kept) -> None:
        try:
            for look in self._reader.looks(job, kept.stop, every=self._every):
                if kept.stop.is_set():
                    return
                if look.reached:
                    kept.latest = look
                self._tell(job, look)
        except LeaderError:
            _log.exception("%s is not kept warm any more.", job)

    def _tell(self, job: str, look: Look) -> None:
        try:
            self._told(job, look)
        except Exception:  # noqa: BLE001  # one that cannot be passed on must not be the last
            _log.exception("What was found of %s could not be passed on.", job)
