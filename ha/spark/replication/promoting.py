"""Promoting: makes the replica of a job the job itself, query by query, each by one rename.

    <root>/<job>.replica/<leader directory>/promoted=<line>  no replicator goes on from here
    <root>/<job>.replica/<leader directory>/spark/<query>    cut to its newest closure, and renamed to
    <root>/<job>/<leader directory>/spark/<query>

Both directories are led meanwhile. After a crash it is run again, and goes on with the queries that are left.
"""

from dataclasses import dataclass

from ha.checkpoints.closure import Closure
from ha.checkpoints.inputs import inputs
from ha.checkpoints.reading import CheckpointReader
from ha.checkpoints.replication import beyond
from ha.checkpoints.trees import Tree
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_copy.copying import Staging
from ha.spark.commit_log import is_query
from ha.spark.relocate import relocate
from ha.spark.replication.marks import begin_line
from ha.spark.replication.replica import COPYING, promotable, settle
from ha.spark.replication.report import REPORT, ReplicaReport, ReplicatedQuery, decoded
from ha.spark.savepoints.restoring import discard_outputs
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.status import JobStatus
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

CALL_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Promotable:
    """One query of a replica: the closure from which it goes on, where that is, and what the other side had by then.

    ``inputs`` are the folders that its file sources read.
    """

    query: str
    path: str
    closure: Closure
    seen: ReplicatedQuery
    inputs: list[str]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The starting point of a promotion.

    Attributes:
        source: URI of the job that was replicated; empty if no round has ended.
        queries: those that can go on here.
        incomplete: those of which no batch is complete: they would begin anew.
    """

    source: str
    queries: list[Promotable]
    incomplete: list[str]


def look(files: BoundedFiles, replica: FencedDirectory) -> Outlook:
    """Say what a promotion would go on from; changes nothing.

    Args:
        files: the store of the replica.
        replica: the leader directory of the replica.

    Raises:
        Fenced: another process leads the replica now: look again.
        StoreError: the store did not answer.
    """
    try:
        report = decoded(replica.read(REPORT))
    except NotFound:
        report = ReplicaReport("", 0.0, [])
    seen = {each.name: each for each in report.queries}
    names = {each.name for folder in (SPARK, COPYING) for each in replica.list(folder) if is_query(each.name)}
    found, incomplete = [], []
    for query in sorted(names):
        there = promotable(files, replica, query)
        if there is not None:
            path, closure = there
            read = inputs(CheckpointReader(Tree(files, replica.at(path))), [*closure.files, *closure.rebuilt.values()])
            found.append(Promotable(query, path, closure, seen.get(query, ReplicatedQuery(query)), read))
        elif any(each.name == "tree" for each in replica.list(f"{COPYING}/{query}")):
            incomplete.append(query)
    return Outlook(report.source, found, incomplete)


def check(job: FencedDirectory, outlook: Outlook, *, replace: bool) -> None:
    """Refuse what would be refused halfway.

    Raises:
        AlreadyExists: the job has checkpoints of these queries, and ``replace`` is false.
        Conflict: the job's leavings are being cleaned up.
        Invalid: there is nothing to go on from.
    """
    if not outlook.queries:
        raise Invalid("The replica has no complete batch of any query, or was promoted before.")
    if JobStatus(job).entry().cleaning == "cleaning":
        raise Conflict(f"Job {job.job!r} is being cleaned up: complete that first, with `ha clean`.")
    there = {each.name for each in job.list(SPARK)}
    if not replace and (taken := sorted(each.query for each in outlook.queries if each.query in there)):
        raise AlreadyExists(
            f"Job {job.job!r} has a checkpoint of query {taken[0]!r} already: add --replace, which moves it to the "
            "trash."
        )


def move_in(files: BoundedFiles, replica: FencedDirectory, leadership: Leadership, found: Promotable) -> str:
    """Make one query of the replica a query of the job. Repeat it after a crash.

    Args:
        files: the store of both.
        replica: the leader directory of the replica, which the caller leads.
        leadership: of the job.
        found: the query, as it was looked at since both are led.

    Returns:
        the name of the former checkpoint in the job's trash; empty if there was none.

    Raises:
        Fenced: another process leads one of them.
        StoreError: the store refused a change, or its outcome stayed unknown.
    """
    query, job = found.query, leadership.own
    shown = f"{SPARK}/{query}"
    if found.path != shown:
        settle(replica, query)
    _cut(files, replica, query, found.closure)
    queries = QueryCheckpoints(job)
    replaced = ""
    if queries.has(query):
        discard_outputs(job)  # or batches that are done again here would be taken for repetitions
        replaced = queries.discard(query)
    job.make_folder(SPARK)
    source, target = replica.at(shown), job.at(shown)
    files.call("bulk_settle", lambda each: each.rename(source, target), CALL_TIMEOUT_S)
    relocate(job, shown, leadership.path(shown))
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
