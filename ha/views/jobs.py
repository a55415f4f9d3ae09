"""Jobs at a glance: state, epoch, lease, contenders and checkpoints, as ``ha list`` and the HTTP API show them."""

import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from leader.errors import NoLeader, NotLeader, Unreadable
from leader.job.admin import JobAdmin
from leader.job.failed_attempts import FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import Status, pick
from leader.layout.bar import bars
from leader.layout.checkpoint import Checkpoint, CheckpointEntry
from leader.layout.information import Record
from leader.layout.lease import Mode
from leader.layout.names import CHECKPOINTS, check_job
from leader.layout.pause import Pause, present
from store.errors import StoreError

UNREACHABLE = "unreachable"
"""In place of the lease of a job whose root does not answer."""

DAMAGED = "damaged"
"""In place of the lease of a job whose record holds none."""

LOOKS = 3
"""Tries while leaders claim the job between two calls."""


class JobPause(msgspec.Struct, frozen=True):
    """The user who has paused a job, the time and the reason; null where that is not known or was not given."""

    by: str | None
    at: str | None
    reason: str | None


class BarredContender(msgspec.Struct, frozen=True):
    """A contender that an operator keeps from taking a job over, as `ha drain` does, and until when."""

    contender: str
    until: str
    by: str | None
    reason: str | None


class NextTry(msgspec.Struct, frozen=True):
    """A job that keeps failing waits for its next try; see :class:`leader.job.failed_attempts.Attempts`.

    Attributes:
        at: by the clock of the file system.
        failures: in a row.
        cause: how the last one ended, in one word.
        host: where that was.
        remedy: what to do, because no restart mends it; null if one may.
    """

    at: str
    failures: int
    cause: str
    host: str
    remedy: str | None


class JobSummary(msgspec.Struct, frozen=True):
    """One job.

    Attributes:
        job: its name.
        state: as Flink names it; null if this version does not know it.
        epoch: of its newest leadership.
        lease: mode of the lease: who attests it. ``released`` if nobody leads, ``damaged`` if there is none,
            ``unreachable`` if its root does not answer.
        holder: the contender that holds the lease.
        contenders: that have announced themselves; null if ZooKeeper does not answer.
        checkpoint_at: when its checkpoints changed last, by the clock of the file system; null without any.
        rows_per_second: that the newest batches of all its queries went through, together; null if no query says it.
        paused: set while an operator has paused it: nobody takes over.
        next_try: set while its leader waits, because the job keeps failing.
        barred: contenders that may not take it over now.
    """

    job: str
    state: str | None = None
    epoch: int | None = None
    lease: str = DAMAGED
    holder: str | None = None
    contenders: list[str] | None = None
    checkpoint_at: str | None = None
    rows_per_second: float | None = None
    paused: JobPause | None = None
    next_try: NextTry | None = None
    barred: tuple[BarredContender, ...] = ()


def summaries(admin: JobAdmin) -> list[JobSummary]:
    """Return all jobs at a glance, by name. One whose record cannot be read is shown as damaged.

    Raises:
        StoreError: the file system does not answer.
    """
    found = []
    for job in admin.jobs():
        try:
            found.append(summary(admin, job))
        except NoLeader:
            found.append(JobSummary(job))
        except StoreError:  # its root of the group; jobs at other roots are shown
            found.append(JobSummary(job, lease=UNREACHABLE))
    return found


def summary(admin: JobAdmin, job: str) -> JobSummary:
    """Return a job at a glance. Costs the NameNode four lists; while it is RESTARTING, one or two more.

    Raises:
        InvalidName: it is no name of a job.
        NoLeader: there is no such job, or its record holds no lease.
        NotLeader: leaders kept claiming the job meanwhile.
        StoreError: the file system does not answer.
    """
    check_job(job)
    for _ in range(LOOKS - 1):
        with suppress(NotLeader):  # a leader has claimed the job between two calls
            return _look(admin, job)
    return _look(admin, job)


def _look(admin: JobAdmin, job: str) -> JobSummary:
    leader, record = admin.record(job)
    lease = record.lease
    assert lease is not None, "a record that was returned has a lease"
    directory = admin.directory(job, leader)
    entries = directory.list()
    checkpoints = directory.list(CHECKPOINTS)
    held = lease.mode is not Mode.RELEASED
    found = pick(each.name for each in entries)
    newest = _newest(each.name for each in checkpoints)
    # A checkpoint is an old entry with a new name: only the folder's time tells when that was.
    changed = max((each.modified_ms for each in entries if each.name == CHECKPOINTS), default=0)
    return JobSummary(
        job,
        _state(found.status if found is not None else None, led=held),
        leader.epoch,
        lease.mode.value,
        lease.contender if held else None,
        admin.contenders(job),
        at_time(changed) if newest and changed else None,
        _rows_per_second(newest),
        _paused(present(record)),
        _next_try(directory) if held and found is not None and found.status is Status.RESTARTING else None,
        _barred(record),
    )


def _newest(names: Iterable[str]) -> list[Checkpoint]:
    """Return the newest checkpoint of each query; names of other versions are left out."""
    found: dict[str, Checkpoint] = {}
    for entry in filter(None, map(CheckpointEntry.parse, names)):
        known = found.get(entry.checkpoint.query)
        if known is None or known.order < entry.checkpoint.order:
            found[entry.checkpoint.query] = entry.checkpoint
    return list(found.values())


def _rows_per_second(newest: Iterable[Checkpoint]) -> float | None:
    rates = [rate for each in newest if (rate := each.metadata.rows_per_second) is not None]
    return sum(rates) if rates else None


def _next_try(directory: FencedDirectory) -> NextTry | None:
    """Read it, of a job that is being restarted; others cost no more calls."""
    try:
        attempts, at_ms = FailedAttempts(directory).shown()
    except Unreadable:  # an older or newer version has written it
        return None
    if not at_ms:
        return None
    return NextTry(at_time(at_ms), attempts.failures, attempts.cause, attempts.host, attempts.remedy or None)


def _paused(pause: Pause | None) -> JobPause | None:
    if pause is None:
        return None
    return JobPause(pause.by or None, at_time(pause.at * 1000) if pause.at else None, pause.reason or None)


def _barred(record: Record) -> tuple[BarredContender, ...]:
    """Those whose time is not over, by this host's clock."""
    found = [each for _, each in sorted(bars(record).items()) if each.until > time.time()]
    return tuple(
        BarredContender(each.contender, at_time(each.until * 1000), each.by or None, each.reason or None)
        for each in found
    )


def _state(stored: Status | None, *, led: bool) -> str | None:
    """Return a job's state as people see it: what runs is suspended while nobody leads it."""
    if stored is None:
        return None
    if led or stored is Status.CREATED or stored.globally_terminal:
        return stored.value
    return Status.SUSPENDED.value


def at_time(at_ms: int) -> str:
    """Write a time of the file system, in milliseconds since 1970, as text."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # anybody can set a file's time, to the year 300,000 for example
        return "unknown"
