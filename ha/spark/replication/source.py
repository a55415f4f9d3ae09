"""Source: reads the checkpoints of a running job; its calls are counted and paced."""

import threading
from collections.abc import Collection

from ha.checkpoints.trees import Pace, Tree
from ha.hook.query_rules import named
from ha.spark.replication.marks import FIRST, line_of
from leader.errors import Fenced
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import NotFound


class Budget:
    """The budget of calls of the source's store, and the calls so far; safe to use from several threads.

    Attributes:
        calls: number of lists and of files that were opened.
        bytes: number of bytes of the files that were copied.
    """

    def __init__(
        self, calls_per_s: float | None = None, bytes_per_s: float | None = None, clock: Clock = BOOT_CLOCK
    ) -> None:
        """Nothing was asked yet; None is no limit."""
        self.calls = self.bytes = 0
        self._calls = Pace(calls_per_s, clock) if calls_per_s else None
        self._bytes = Pace(bytes_per_s, clock) if bytes_per_s else None
        self._lock = threading.Lock()

    def call(self) -> None:
        """Wait until one call more may begin."""
        with self._lock:
            self.calls += 1
        if self._calls is not None:
            self._calls.wait()

    def file(self, size: int) -> None:
        """Wait until a file of that size may be copied."""
        self.call()
        with self._lock:
            self.bytes += size
        if self._bytes is not None:
            self._bytes.wait(size)


class ReplicaSource:
    """A job's checkpoints, whatever the present name of its leader directory."""

    def __init__(
        self, admin: JobAdmin, files: BoundedFiles, job: str, budget: Budget, only: Collection[str] = ()
    ) -> None:
        """Connect to nothing yet; without ``only`` all queries are meant."""
        self.job, self.budget, self._only = job, budget, frozenset(only)
        self._admin, self._files = admin, files
        self._known: FencedDirectory | None = None
        self._line = FIRST

    @property
    def uri(self) -> str:
        """URI of the job."""
        return self._files.at(self.job)

    def queries(self) -> list[str]:
        """Return the names of the queries that have a checkpoint; raises ``Fenced`` while the job's leader changes."""
        try:
            self.budget.call()
            entries = self._directory().list(SPARK)
        except (Fenced, NotFound):
            self._known = None  # another leader: look for its directory
            entries = self._directory().list(SPARK)
        return named(each.name for each in entries if not self._only or each.name in self._only)

    @property
    def line(self) -> str:
        """The line of the job, as the last :meth:`queries` found it."""
        return self._line

    def tree(self, query: str) -> Tree:
        """Return a query's checkpoint, where it was at the last :meth:`queries`."""
        return Tree(self._files, self._directory().at(f"{SPARK}/{query}"), self.budget.call)

    def _directory(self) -> FencedDirectory:
        if self._known is None:
            self.budget.call()
            found = self._admin.directory(self.job)
            self.budget.call()
            self._line = line_of(found)  # only a promotion changes it, and that claims the job
            self._known = found
        return self._known
