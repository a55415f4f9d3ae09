"""Reads: all jobs and each of them, from the stores. Simultaneous requests for the same thing share one lookup."""

import threading
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request

from ha.api.operations import PREFIX, Operation
from ha.api.process import ApiStores
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.inspection import Inspection, inspect
from ha.checkpoints.trees import Tree
from ha.spark.replication.report import REPORT, ReplicatedQuery, decoded, promoted
from ha.spark.stored.locations import check_query
from ha.views import records
from ha.views.ages import at_time
from ha.views.jobs import JobSummary, summaries, summary
from ha.views.leases import Leases, steady
from ha.views.queries import Queries, queries
from ha.views.records import CheckpointRow, FailureRow, GrantRow
from ha.views.story import JobStory, story
from leader.errors import NoLeader, Unreachable
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import NotFound

T = TypeVar("T")

LEAST_PAUSE_S = 1.0  # seconds between two looks at all jobs at least

SHARE = 4
"""Between two looks passes at least this many times what a look takes: so they take a fifth of the time at most."""

WAIT_S = 10.0  # seconds that a request waits for a look of another one


class Shared(Generic[T]):
    """The result of a look at the stores, for all who ask while it is new; from any thread."""

    def __init__(self, look: Callable[[], T]) -> None:
        """Look at nothing yet."""
        self._look = look
        self._lock = threading.Lock()
        self._known: tuple[T, float] | None = None

    def known(self) -> T | None:
        """Return the last result while it is new; None otherwise. No store is asked."""
        known = self._known
        return known[0] if known is not None and now() < known[1] else None

    def value(self) -> T:
        """Return a new result; it raises what the look raises. TimeoutError: another thread's look does not end."""
        if not self._lock.acquire(timeout=WAIT_S):
            raise TimeoutError("The stores take too long to answer: come again.")
        try:
            known = self.known()
            if known is not None:
                return known
            began = now()
            found = self._look()
            took = now() - began
            self._known = (found, now() + max(LEAST_PAUSE_S, SHARE * took))
            return found
        finally:
            self._lock.release()


class Reads:
    """The API's knowledge of jobs, read from the stores."""

    def __init__(self, stores: ApiStores) -> None:
        """Ask nothing yet."""
        self._stores = stores
        self._inspecting = threading.Lock()
        self.jobs: Shared[list[JobSummary]] = Shared(lambda: summaries(stores.admin(), stores.leases()))

    def operations(self) -> list[Operation]:
        """Return what can be read."""
        of_a_job: tuple[tuple[str, Callable[[Request], Any], str, Any], ...] = (
            ("", self._judged(summary), "One job at a glance.", JobSummary),
            ("/story", self._judged(story), "All that the stores say of it, and what a person can do.", JobStory),
            ("/queries", self._judged(queries), "Its declared queries.", Queries),
            ("/exceptions", self._of(records.failures), "Its newest failures.", list[FailureRow]),
            ("/history", self._of(records.grants), "Its grants.", list[GrantRow]),
            (
                "/checkpoints",
                self._of(records.checkpoints),
                "Its checkpoints that are kept, by query, the newest one last.",
                list[CheckpointRow],
            ),
            (
                "/checkpoints/{query}",
                self._inspected,
                "What the checkpoint of a query says; one at a time.",
                Inspection,
            ),
            (
                "/replica",
                self._judged(replica),
                "How far a replica is; the name of its job ends in `.replica`.",
                ReplicaView,
            ),
        )
        jobs = f"{PREFIX}/jobs"
        return [
            Operation(jobs, lambda _: self.jobs.value(), "All jobs at a glance.", list[JobSummary], refusals=(500,)),
            *(
                Operation(f"{jobs}/{{job}}{path}", handler, text, answer, refusals=(400, 404, 409, 500))
                for path, handler, text, answer in of_a_job
            ),
        ]

    def _inspected(self, request: Request) -> Inspection:
        if not self._inspecting.acquire(timeout=WAIT_S):  # each takes thousands of calls
            raise TimeoutError("Other checkpoints are being read: come again.")
        try:
            asked = request.path_params
            return inspection(self._stores.admin(), self._stores.files(), asked["job"], asked["query"])
        finally:
            self._inspecting.release()

    def _of(self, view: Callable[[JobAdmin, str], Any]) -> Callable[[Request], Any]:
        return lambda request: view(self._stores.admin(), request.path_params["job"])

    def _judged(self, view: Callable[[JobAdmin, str, Leases], Any]) -> Callable[[Request], Any]:
        return lambda request: view(self._stores.admin(), request.path_params["job"], self._stores.leases())


def inspection(admin: JobAdmin, files: BoundedFiles, job: str, query: str) -> Inspection:
    """Inspect the checkpoint of a query. Costs a list for each partition of its state, and reads small files."""
    # `admin`: of the jobs. `files`: the same file system, to read the checkpoint. `query`: name of the query.
    # NoLeader: also if there is no such checkpoint. Unreachable: this process cannot read checkpoints.
    if find_spec("pyarrow") is None:
        raise Unreachable("Reading checkpoints needs pyarrow on this host: pip install 'hybrid-ha[spark]'.")
    directory = admin.directory(job)
    try:
        return inspect(CheckpointReader(Tree(files, directory.at(f"{SPARK}/{check_query(query)}"))))
    except NotFound as error:
        directory.list()  # says so if another leader has just taken over
        raise NoLeader(f"Job {job!r} has no checkpoint of a query {query!r}.") from error


class ReplicaRow(msgspec.Struct, frozen=True):
    """One query of a replica; see :class:`ha.spark.replication.report.ReplicatedQuery`."""

    query: str
    batch: int | None
    newest: int | None
    behind: int
    level_at: str | None
    problem: str


class ReplicaView(msgspec.Struct, frozen=True):
    """One replica, as its replicator last wrote it down; ``replicated`` says whether one runs now."""

    source: str
    at: str | None
    promoted: bool
    replicated: bool
    queries: list[ReplicaRow]


def replica(admin: JobAdmin, job: str, leases: Leases) -> ReplicaView:
    """Return how far a replica is; ``job`` is its own name, which ends in ``.replica``."""
    # NoLeader: also if it is no replica with a completed round.
    directory, _, _, lease = steady(lambda: leases.look(admin, job))
    try:
        ended, report = promoted(directory), decoded(directory.read(REPORT))
    except NotFound as error:
        raise NoLeader(f"Job {job!r} is no replica, or no round of its replication has ended.") from error
    at, rows = at_time(int(report.at * 1000)), [_replica_row(each) for each in report.queries]
    return ReplicaView(report.source, at, ended, lease.held, rows)


def _replica_row(query: ReplicatedQuery) -> ReplicaRow:
    at = at_time(int(query.level_at * 1000)) if query.level_at else None
    return ReplicaRow(query.name, query.batch, query.newest, query.behind, at, query.problem)
