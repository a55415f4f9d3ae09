"""Reader: finds the leaders of any number of jobs, each lookup within its time-out, from any thread.

:class:`leader.lookup.job_lookup.JobLookup` carries out the lookups of one job; a reader keeps one for each job.
"""

import os
import random
import threading
import weakref
from collections import deque
from collections.abc import Iterator

from leader.layout.names import check_job
from leader.lookup.answers import Answer, Look, Processes, Snapshots
from leader.lookup.job_lookup import JobLookup
from leader.lookup.rate_limit import (
    JOB_PAUSE_S,
    LEAST_ASKED,
    VERIFICATION_BURST,
    VERIFICATION_RATE,
    HdfsRateLimit,
    Jitter,
)
from leader.lookup.store_clients import LookupContext, StoreClients
from leader.lookup.watch import Watch, changes
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.zookeeper import ZooKeeper

STRANGERS = 1024  # most unknown jobs that are kept because a caller asked for them lately


class Reader:
    """Answers lookups for any number of jobs, from any thread; a forked child may continue to use it.

    Raises:
        InvalidName: the argument is not a job's name.
        NoLeader: the job has no leader now, or does not exist.
        Unreachable: no store answered in time.
    """

    def __init__(
        self,
        files: BoundedFiles,  # closed by the caller
        zookeeper: ZooKeeper | None,  # closed by the caller; None if the file system carries everything
        timing: Timing,  # all durations of the protocol
        *,
        audit: float = 30.0,  # seconds after which an answer of ZooKeeper is compared with HDFS
        # Access to the snapshots of this host's agent; None to ask the stores always.
        snapshots: Snapshots | None = None,
        # Tells watches of a leader's end while ZooKeeper is away; None to ask HDFS from time to time.
        processes: Processes | None = None,
        clock: Clock = BOOT_CLOCK,  # the host's boot clock, unless in a simulation
        rng: random.Random | None = None,  # spreads the readers of many hosts over time
    ) -> None:
        jitter = Jitter(rng or random.Random())  # noqa: S311  # to spread readers, not to hide anything
        self._context = LookupContext(timing, audit, clock, jitter)
        self.stores = StoreClients(self._context, files, zookeeper)
        longest_pause = audit / LEAST_ASKED if zookeeper is not None else JOB_PAUSE_S
        local = files.uri.startswith("file:")
        self.rate_limit = HdfsRateLimit(clock, longest_pause, unlimited=local)
        self.verifications = HdfsRateLimit(
            clock, longest_pause, rate=VERIFICATION_RATE, burst=VERIFICATION_BURST, unlimited=local
        )
        self._snapshots = snapshots
        self._processes = processes
        self._jobs: dict[str, JobLookup] = {}  # the known jobs: they exist, so their number is bounded
        # The other jobs, for as long as somebody asks for them.
        self._strangers: weakref.WeakValueDictionary[str, JobLookup] = weakref.WeakValueDictionary()
        self._lately: deque[JobLookup] = deque(maxlen=STRANGERS)
        self._lock = threading.Lock()
        _every.add(self)

    @property
    def fallbacks(self) -> dict[str, int]:
        """How often HDFS was asked, by reason; see :class:`leader.lookup.store_clients.Fallback`."""
        return self.stores.fallbacks

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        """Return the leader of the job, within ``timeout`` seconds for all stores together.

        If this reader knew a leader and there is none now, it waits for the next one within its time-out. With
        ``stale``, it returns the last known answer, marked as stale, if no store can be reached.
        """
        lookup = self._lookup(job)
        try:
            return lookup.leader(timeout, stale=stale)
        finally:
            self._keep(lookup)

    def cached_leader(self, job: str, timeout: float = 2.0) -> Answer | None:
        """Return the answer of this host's agent, without asking any store; None if it gives no credible one."""
        lookup = self._lookup(job)
        try:
            return lookup.ask_agent(timeout)
        finally:
            self._keep(lookup)

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        """Report that this leader refused or did not answer; return the present one, by HDFS unless one is known."""
        lookup = self._lookup(job)
        try:
            return lookup.report(session_id, timeout)
        finally:
            self._keep(lookup)

    def epoch_is(self, job: str, epoch: int, session_id: str) -> bool:
        """Whether the epoch is at least as new as any that the reader knows of the job."""
        known = self._lookup(job).known
        return known is None or known.epoch < epoch or (known.epoch, known.session_id) == (epoch, session_id)

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        """Yield the leader, then every true change, None for no leader; nothing while no store can be reached."""
        return changes(self.looks(job, stop, timeout))

    def looks(
        self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = float("inf")
    ) -> Iterator[Look]:
        """Look now, after every change, and after ``every`` seconds at the latest, until ``stop`` is set."""
        lookup = self._lookup(job)
        for look in Watch(lookup, self.stores, self._context, stop, timeout, every, self._processes).looks():
            self._keep(lookup)
            yield look

    def _lookup(self, job: str) -> JobLookup:
        lookup = self._jobs.get(check_job(job))
        if lookup is None:
            with self._lock:
                lookup = self._strangers.get(job)
                if lookup is None:
                    limits = self.rate_limit, self.verifications
                    lookup = JobLookup(job, self.stores, *limits, self._context, self._snapshots)
                    self._strangers[job] = lookup
            self._lately.append(lookup)
        return lookup

    def _keep(self, lookup: JobLookup) -> None:
        if lookup.job not in self._jobs and lookup.known is not None:
            self._jobs[lookup.job] = lookup

    def _forked(self) -> None:
        self._lock = threading.Lock()
        self.rate_limit.forked()
        self.verifications.forked()
        if self._processes is not None:
            self._processes.forked()
        for lookup in [*self._jobs.values(), *self._strangers.values()]:
            lookup.forked()


_every: "weakref.WeakSet[Reader]" = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(_every):
        each._forked()  # noqa: SLF001 - our own class


os.register_at_fork(after_in_child=_after_fork)
