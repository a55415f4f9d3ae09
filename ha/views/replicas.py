"""The replica of a job, as the HTTP API shows it where the replica is."""

import msgspec

from ha.spark.replication.marks import promoted
from ha.spark.replication.report import REPORT, ReplicatedQuery, decoded
from ha.views.jobs import at_time
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from store.errors import NotFound


class ReplicaRow(msgspec.Struct, frozen=True):
    """One query of a replica; see :class:`ha.spark.replication.report.ReplicatedQuery`."""

    query: str
    batch: int | None
    newest: int | None
    behind: int
    level_at: str | None
    problem: str


class ReplicaView(msgspec.Struct, frozen=True):
    """One replica, as its replicator last wrote it down."""

    source: str
    at: str | None
    promoted: bool
    queries: list[ReplicaRow]


def replica(admin: JobAdmin, job: str) -> ReplicaView:
    """Return how far a replica is; ``job`` is its own name, which ends in ``.replica``.

    Raises:
        InvalidName: it is no name of a job.
        NoLeader: there is no such job, or it is no replica of which a round has ended.
        StoreError: the file system does not answer.
    """
    directory = admin.directory(job)
    try:
        ended, report = promoted(directory), decoded(directory.read(REPORT))
    except NotFound as error:
        raise NoLeader(f"Job {job!r} is no replica, or no round of its replication has ended.") from error
    return ReplicaView(report.source, at_time(int(report.at * 1000)), ended, [_row(each) for each in report.queries])


def _row(query: ReplicatedQuery) -> ReplicaRow:
    at = at_time(int(query.level_at * 1000)) if query.level_at else None
    return ReplicaRow(query.name, query.batch, query.newest, query.behind, at, query.problem)
