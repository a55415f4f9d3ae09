"""Promoting: makes the replica of a job the job itself, query by query, each by one rename.

    <root>/<job>.replica/<leader directory>/promoted=<line>  no replicator goes on from here
    <root>/<job>.replica/<leader directory>/spark/<query>    cut to its newest closure, and renamed to
    <root>/<job>/<leader directory>/spark/<query>

Both directories are led meanwhile. After a crash it is run again, and resumes with the queries that are left.
"""

from dataclasses import dataclass

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.inputs import inputs
from ha.checkpoints.replica_round import beyond
from ha.checkpoints.trees import Tree
from ha.hook.query_rules import named
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_tools.copying import Staging
from ha.spark.replication.marks import begin_line
from ha.spark.replication.replica import COPYING, promotable, settle
from ha.spark.replication.report import REPORT, ReplicaReport, ReplicatedQuery, decoded
from ha.spark.savepoints.restoring import discard_outputs
from ha.spark.stored.locations import relocate
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.status import JobStatus
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

CALL_TIMEOUT_S = 20.0


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


def look(files: BoundedFiles, replica: FencedDirectory) -> PromotionOutlook:
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


def check(job: FencedDirectory, outlook: PromotionOutlook, *, replace: bool) -> None:
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


def begin(job: FencedDirectory) -> None:
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
