"""Jobs without programs: threads complete their batches under whoever leads them, as their programs would."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, pairwise

from ha.config.stores import Stores
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout.lease import Mode
from store.clock import now
from store.errors import StoreError

ENDS_WITHIN_S = 120.0  # Of a program that was told: each of its calls has a limit of its own
POLL = 0.1  # Seconds between two looks of a program whether it is led again
MOVER = "move-"  # Begins the name of the contender that is ``ha job move``: it leads the job so that nobody writes


@dataclass
class Job:
    """One job, and what became of it."""

    name: str  # of the job
    period: float  # seconds from batch to batch
    # boot-clock time of each batch, and the root at which it was completed
    done: list[tuple[float, str]] = field(default_factory=list)

    def pause(self, since: float, until: float) -> float:
        """Longest time without a batch that ended or lasted in this span, in periods; 1 is as it should be."""
        times = [at for at, _ in self.done if at <= until]
        gaps = [later - at for at, later in pairwise([*times, until]) if later > since]
        return max(gaps, default=until - since) / self.period

    def at(self) -> str:
        """Root of its newest batch."""
        return self.done[-1][1] if self.done else ""


class Programs:
    """The programs of all jobs, a thread each; each retains so many files of a log beside its checkpoints."""

    def __init__(self, opened: Stores, jobs: Sequence[Job], retained: int = 0) -> None:
        self.admin = JobAdmin(opened.files, opened.zookeeper, opened.timing.call_timeout)
        self._opened, self._retained = opened, retained
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in jobs]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:  # daemons: one that hangs does not keep the benchmark
            thread.join(ENDS_WITHIN_S)

    def holder(self, job: str) -> str:
        """Return the contender that has the lease; empty if the store does not name one."""
        with suppress(LeaderError, StoreError):
            return self.admin.lease(job)[1].contender
        return ""

    def _run(self, job: Job) -> None:
        due, batches = now(), count()
        led: FencedDirectory | None = None
        while not self._ended.wait(max(0.0, due - now())):
            while not self._ended.is_set():
                try:
                    led = led or self._led(job.name)
                    if led is not None:
                        self._complete(led, next(batches))
                        root = self._opened.files.at(job.name).removesuffix(f"/{job.name}")
                        job.done.append((now(), root))
                        due = max(due + job.period, now())
                        break
                except (LeaderError, StoreError):
                    led = None
                self._ended.wait(POLL)

    def _led(self, job: str) -> FencedDirectory | None:
        leader, lease = self.admin.lease(job)
        free = lease.mode is Mode.RELEASED or lease.owner != leader.session_id
        return None if free or lease.contender.startswith(MOVER) else self.admin.directory(job, leader)

    def _complete(self, led: FencedDirectory, batch: int) -> None:
        if self._retained:
            led.put(b"v1\n{}", f"blobs/commit-{batch}=1")
        if self._retained and batch >= self._retained:
            with suppress(StoreError):
                led.delete(f"blobs/commit-{batch - self._retained}=1")
        Checkpoints(led).completed("daily", batch)
