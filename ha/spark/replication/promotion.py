"""Promotion: the replica of a job becomes the job, as an operator asks; the old side is fenced if it can be reached.

    <root>/<job>.replica/<leader directory>/promoted=<line>  no replicator goes on from here
    <root>/<job>.replica/<leader directory>/spark/<query>    cut to its newest closure, and renamed to
    <root>/<job>/<leader directory>/spark/<query>            query by query, each by one rename

Both directories are led meanwhile. After a crash it is run again, and resumes with the queries that are left.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.inputs import bound, inputs
from ha.checkpoints.replica_round import beyond
from ha.checkpoints.trees import Tree
from ha.config.sources import known_groups
from ha.config.stores import Stores
from ha.hook.query_rules import named
from ha.leadership.leadership import Leadership
from ha.placement.place import SEPARATOR
from ha.spark.checkpoint_tools.copying import Staging
from ha.spark.replication.replica import COPYING, promotable, settle
from ha.spark.replication.report import (
    REPORT,
    ReplicaReport,
    ReplicatedQuery,
    begin_line,
    decoded,
    mark,
    promoted,
    replica_of,
)
from ha.spark.rewind.operated import led
from ha.spark.savepoints.restoring import discard_outputs
from ha.spark.stored.locations import relocate
from ha.verbs.asking import ask
from ha.verbs.table import CANCEL
from leader.errors import NoLeader, NotLeader
from leader.job.admin import JobAdmin, attempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.status import JobStatus, Status
from leader.layout.lease import Mode
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, now
from store.errors import AlreadyExists, Conflict, HaError, Invalid, NotFound, StoreError
from store.open import normal

POLL_S = 0.5  # seconds between two looks whether the old side has stopped


@dataclass(frozen=True, slots=True)
class Promotable:
    """One query of a replica: the closure from which it resumes, its place, and the other side's state by then.

    ``inputs`` are the folders that its file sources read.
    """

    query: str
    path: str
    closure: Closure
    seen: ReplicatedQuery
    inputs: list[str]


@dataclass(frozen=True, slots=True)
class PromotionOutlook:
    """The starting point of a promotion."""

    source: str  # URI of the job that was replicated; empty if no round has ended
    queries: list[Promotable]  # those that can resume here
    incomplete: list[str]  # those without a complete batch: they would start from scratch


class Promotion:
    """The promotion of one replica.

    Attributes:
        outlook: what the job resumes from.
        fenced: a sentence about the old side; empty if it was not told.
    """

    outlook: PromotionOutlook

    def __init__(self, opened: Stores, job: str, old_files: str | None, by: str, timeout: float) -> None:
        # `opened` are the stores where the replica is, and `old_files` the root of the old side; None if it cannot be
        # reached. `by` is who asks, for the history there. The old side, and each lease, is awaited for `timeout`
        # seconds.
        self._opened, self._job, self._old, self._by, self._timeout = opened, job, old_files, by, timeout
        self._admin = JobAdmin(opened.files, None, opened.patience)
        self._only_fence = False
        self.fenced = ""

    def look(self, *, replace: bool, dry_run: bool, force: bool = False) -> list[str]:
        """Find what the job would resume from, and return warnings; refuse while it is led at the old side."""

        def find() -> tuple[FencedDirectory, PromotionOutlook]:
            found = self._replica()
            return found, _outlook(self._opened.files, found)

        replica, self.outlook = attempts()(find)  # a replicator may take over meanwhile
        _check_group(self._opened, self._job, [self.outlook.source.removesuffix(f"/{self._job}"), self._old or ""])
        if self._old is not None and not self.outlook.queries and promoted(replica) and not dry_run:
            self._only_fence = True  # it was promoted before, and the old side is back
            return []
        with contextlib.suppress(NoLeader):  # the usual case: there is no such job here yet
            _check(self._admin.directory(self._job), self.outlook, replace=replace)
        if not self.outlook.queries:
            raise Invalid("The replica has no complete batch of any query, or was promoted before.")
        warnings = list(bound({each.query: each.inputs for each in self.outlook.queries}, self._opened.files.uri))
        if self._old is None and (working := self._working()):
            if not dry_run and not force:
                raise Conflict(f"{working} Stop it there first: add --old-files. Or let it run at both: --force.")
            warnings.append(working)
        return warnings

    def _working(self) -> str:
        """Return a sentence if the old side can be seen from here, and the job is led there; else empty."""
        root = self.outlook.source.removesuffix(f"/{self._job}")
        with contextlib.suppress(HaError), self._opened.open(root) as old:
            admin = JobAdmin(old, None, self._opened.patience)
            leader, lease = admin.lease(self._job)
            if lease.mode is not Mode.RELEASED and not _status(admin, self._job).globally_terminal:
                return f"{lease.contender} leads job {self._job!r} at {root}, in epoch {leader.epoch}."
        return ""

    def promote(self, *, replace: bool) -> None:
        """Fence the old side, lead the replica and the job, and move the queries from one into the other."""
        if self._old is not None:
            self.fenced = _fence(self._opened, self._job, self._old, self._by, self._timeout)
        if self._only_fence:
            return
        name, files = replica_of(self._job), self._opened.files
        attempts()(lambda: mark(self._replica()))
        with contextlib.suppress(NoLeader, StoreError):  # there is no replicator, or its leader finds the mark
            self._admin.ask_to_hand_over(name)
        with (
            led(self._opened, name, self._timeout, "promoted", alone=True) as replica,
            led(self._opened, self._job, self._timeout, "promoted") as leadership,
        ):
            directory = self._admin.directory(replica.job, replica.own.leader)
            mark(directory)  # a replicator that has begun again meanwhile has taken it away
            self.outlook = _outlook(files, directory)
            _check(leadership.own, self.outlook, replace=replace)
            for each in self.outlook.queries:
                if each is self.outlook.queries[-1]:  # its rename is the last step: before it, a repeat has work to do
                    _begin(leadership.own)
                move_in(files, directory, leadership, each)

    def _replica(self) -> FencedDirectory:
        try:
            return self._admin.directory(replica_of(self._job))
        except NoLeader as error:
            raise NoLeader(
                f"There is no replica of job {self._job!r} here: `ha replica run {self._job} --to URI` makes one."
            ) from error


def _check_group(opened: Stores, job: str, others: Iterable[str]) -> None:
    """Refuse to make a job at a root whose group has it at another one: both would claim to be the job."""
    here = opened.files.at(replica_of(job)).removesuffix(f"/{replica_of(job)}")
    for roots in known_groups():
        with opened.open(SEPARATOR.join(roots)) as group:
            known = frozenset(group.uri.split(SEPARATOR))
        other = next((each for each in map(normal, filter(None, others)) if each in known and each != here), "")
        if here in known and other:
            raise Invalid(
                f"{here} and {other} are roots of one group, and a job lies at one of them only: `ha job "
                f"move {job} --to "
                f"{here}` moves it."
            )


def _fence(opened: Stores, job: str, old_files: str, by: str, timeout: float) -> str:
    """Cancel the job at the old side: its leader does so, or the next one finds that before it runs anything."""
    with opened.open(old_files) as old:
        if old.uri.rstrip("/") == opened.files.uri.rstrip("/"):
            raise Invalid("--old-files is the root of this side: give that of the side that is left.")
        admin = JobAdmin(old, None, opened.patience)
        if admin.lease(job)[1].mode is not Mode.RELEASED:
            with contextlib.suppress(NoLeader):  # it has just given the lease back
                ask(admin, job, CANCEL, None, by)
            end = now() + timeout
            while now() < end:
                if _status(admin, job).globally_terminal:
                    return f"{old.uri} is stopped, and must not run again"
                BOOT_CLOCK.sleep(POLL_S)
        _cancel(admin, job)
        released = admin.lease(job)[1].mode is Mode.RELEASED
    if released:
        return f"{old.uri} must not run again"
    return f"{old.uri} must not run again; its leader has not answered in {timeout:g} s: see that it does not run"


def _status(admin: JobAdmin, job: str) -> Status:
    with contextlib.suppress(NotLeader):  # another leader has begun
        return JobStatus(admin.directory(job)).read()
    return Status.RUNNING


def _cancel(admin: JobAdmin, job: str) -> None:
    """Write that the job is canceled: the next leader sees this before it runs its command."""
    status = JobStatus(admin.directory(job))
    for new in (Status.CANCELLING, Status.CANCELED):
        if (found := status.read()).allows(new) and not found.globally_terminal:
            status.change(found, new)
    if not (found := status.read()).globally_terminal:
        raise Conflict(f"Job {job!r} at the old side is {found.value}, and could not be cancelled: try again.")


CALL_TIMEOUT_S = 20.0


def _outlook(files: BoundedFiles, replica: FencedDirectory) -> PromotionOutlook:
    """Return what a promotion would resume from; change nothing."""
    try:
        report = decoded(replica.read(REPORT))
    except NotFound:
        report = ReplicaReport("", 0.0, [])
    seen = {each.name: each for each in report.queries}
    names = named({each.name for folder in (SPARK, COPYING) for each in replica.list(folder)})
    found, incomplete = [], []
    for query in names:
        there = promotable(files, replica, query)
        if there is not None:
            path, closure = there
            read = inputs(CheckpointReader(Tree(files, replica.at(path))), [*closure.files, *closure.rebuilt.values()])
            found.append(Promotable(query, path, closure, seen.get(query, ReplicatedQuery(query)), read))
        elif any(each.name == "tree" for each in replica.list(f"{COPYING}/{query}")):
            incomplete.append(query)
    return PromotionOutlook(report.source, found, incomplete)


def _check(job: FencedDirectory, outlook: PromotionOutlook, *, replace: bool) -> None:
    """Refuse what would be refused halfway."""
    if not outlook.queries:
        raise Invalid("The replica has no complete batch of any query, or was promoted before.")
    if JobStatus(job).entry().cleaning == "cleaning":
        raise Conflict(f"Job {job.job!r} is being cleaned up: complete that first, with `ha job clean {job.job}`.")
    there = {each.name for each in job.list(SPARK)}
    if not replace and (taken := sorted(each.query for each in outlook.queries if each.query in there)):
        raise AlreadyExists(
            f"Job {job.job!r} has a checkpoint of query {taken[0]!r} already: add --replace, which moves it to the "
            "trash."
        )


def move_in(files: BoundedFiles, replica: FencedDirectory, leadership: Leadership, found: Promotable) -> str:
    """Make one query of the replica a query of the job; both are led. Repeat it after a crash."""
    # Returns the name of the former checkpoint in the job's trash; empty if there was none.
    query, job = found.query, leadership.own
    shown = f"{SPARK}/{query}"
    if found.path != shown:
        settle(replica, query)
    _cut(files, replica, query, found.closure)
    relocate(replica, shown, leadership.path(shown))
    queries = QueryCheckpoints(job)
    replaced = ""
    if queries.has(query):
        discard_outputs(job)  # or batches that are done again here would be taken for repetitions
        replaced = queries.discard(query)
    job.make_folder(SPARK)
    source, target = replica.at(shown), job.at(shown)
    files.call("bulk_settle", lambda each: each.rename(source, target), CALL_TIMEOUT_S)
    return replaced


def _begin(job: FencedDirectory) -> None:
    """Begin a new line of a job, which runs again if it has ended for good, as where it was promoted elsewhere."""
    begin_line(job)
    status = JobStatus(job)
    if (found := status.read()).globally_terminal:
        status.begin_again(found)


def _cut(files: BoundedFiles, replica: FencedDirectory, query: str, closure: Closure) -> None:
    """Leave nothing from which Spark would take more than the closure."""
    replica.make_folder(COPYING)
    staging = Staging(files, replica.at(f"{COPYING}/{query}"), tree=replica.at(f"{SPARK}/{query}"))
    reader = CheckpointReader(staging.tree)
    for path, origin in closure.rebuilt.items():
        staging.put({path: reader.rebuilt(path, origin)})
    for paths in beyond(reader.files(), closure):
        staging.remove(paths)
