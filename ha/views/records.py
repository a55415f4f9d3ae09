"""Records of a job: its leader, grants, failures and checkpoints, as the command line and the HTTP API show them."""

import msgspec

from ha.views.ages import at_time
from leader.job.admin import JobAdmin
from leader.job.exceptions import JobException
from leader.layout import checkpoint_list
from leader.layout.checkpoint import Checkpoint
from leader.layout.names import CHECKPOINTS
from leader.lookup.answers import Answer


class LeaderView(msgspec.Struct, frozen=True):
    """The leader; ``age_ms`` says how old the answer is, and ``verified`` whether a store has just confirmed it."""

    job: str
    epoch: int
    session_id: str
    endpoints: dict[str, str]
    source: str
    age_ms: int
    verified: bool


class GrantRow(msgspec.Struct, frozen=True):
    """One grant; see :class:`leader.job.grants.PastGrant`."""

    at: str | None
    epoch: int
    session_id: str | None
    contender: str | None
    reason: str
    ended: str | None
    by: str | None
    adopted_by: str | None


class FailureRow(msgspec.Struct, frozen=True):
    """One failure; see :class:`leader.job.exceptions.JobException`."""

    at: str | None
    host: str | None
    epoch: int
    query: str | None
    kind: str = msgspec.field(name="class")
    message: str
    trace: str | None
    dump: str | None


class CheckpointRow(msgspec.Struct, frozen=True):
    """One completed checkpoint; see :class:`leader.layout.checkpoint.Checkpoint`."""

    query: str
    batch: int
    id: int
    duration_ms: int | None
    rows: int | None
    rows_per_second: float | None
    state_rows: int | None
    state_bytes: int | None
    offsets: str | None


def leader_view(answer: Answer) -> LeaderView:
    """Return the answer of a lookup as it is shown."""
    endpoints, age_ms = dict(answer.endpoints), round(answer.age * 1000)
    return LeaderView(
        answer.job, answer.epoch, answer.session_id, endpoints, answer.source.value, age_ms, answer.verified
    )


def grants(admin: JobAdmin, job: str) -> list[GrantRow]:
    """Return the grants of a job, oldest first."""
    return [
        GrantRow(
            at_time(each.at_ms) if each.at_ms else None,
            each.epoch,
            each.session_id or None,
            each.contender or None,
            each.reason,
            each.ended or None,
            each.by or None,
            each.adopted_by or None,
        )
        for each in admin.history(job)
    ]


def failures(admin: JobAdmin, job: str) -> list[FailureRow]:
    """Return the newest failures of a job, oldest first."""
    return [_failure(each) for each in admin.exceptions(job)]


def _failure(failure: JobException) -> FailureRow:
    return FailureRow(
        at=at_time(failure.at_ms) if failure.at_ms else None,
        host=failure.host or None,
        epoch=failure.epoch,
        query=failure.query or None,
        kind=failure.kind,
        message=failure.message,
        trace=failure.trace or None,
        dump=failure.dump or None,
    )


def checkpoints(admin: JobAdmin, job: str) -> list[CheckpointRow]:
    """Return the checkpoints that are kept, by query, the newest one last."""
    # Unreadable: a name among them cannot be read, and may be that of the newest one.
    directory = admin.directory(job)
    names = [each.name for each in directory.list(CHECKPOINTS)]
    found = checkpoint_list.parse(names, job, directory.leader)
    return [checkpoint_row(each) for query in sorted(found.entries) for each in found.retained(query)]


def checkpoint_row(checkpoint: Checkpoint) -> CheckpointRow:
    """Return one checkpoint as it is shown."""
    known = checkpoint.metadata
    return CheckpointRow(
        checkpoint.query,
        checkpoint.batch,
        checkpoint.id,
        known.duration_ms,
        known.rows,
        known.rows_per_second,
        known.state_rows,
        known.state_bytes,
        known.offsets or None,
    )
