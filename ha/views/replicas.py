"""The replica of a job, as the HTTP API shows it where the replica is."""

import msgspec

from ha.spark.replication.report import REPORT, ReplicatedQuery, decoded, promoted
from ha.views.ages import at_time
from ha.views.leases import Leases, steady
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
    at, rows = at_time(int(report.at * 1000)), [_row(each) for each in report.queries]
    return ReplicaView(report.source, at, ended, lease.held, rows)


def _row(query: ReplicatedQuery) -> ReplicaRow:
    at = at_time(int(query.level_at * 1000)) if query.level_at else None
    return ReplicaRow(query.name, query.batch, query.newest, query.behind, at, query.problem)
