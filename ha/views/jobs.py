"""Jobs at a glance: state, epoch, lease, contenders and checkpoints, as ``ha job list`` and the HTTP API show them."""

import time
from collections.abc import Iterable

import msgspec

from ha.views.ages import at_time
from ha.views.leases import Leases, steady
from leader.errors import NoLeader, Unreadable
from leader.job import grants
from leader.job.admin import JobAdmin
from leader.job.failed_attempts import FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import Status, pick
from leader.layout.bar import bars
from leader.layout.checkpoint import Checkpoint, CheckpointEntry
from leader.layout.information import Record
from leader.layout.names import CHECKPOINTS, EXCEPTIONS, HISTORY, check_job, unguarded_in
from leader.layout.pause import Pause, present
from leader.layout.running import contradiction, others, runs
from store.errors import PermissionDenied, StoreError
from store.files import Entry

UNREACHABLE = "unreachable"  # in place of the lease of a job whose root does not answer
NOT_YOURS = "not-yours"  # in place of the lease of a job whose directory this user may not read
DAMAGED = "damaged"  # in place of the lease of a job whose record holds none

HOUR_S = 3600.0


class JobPause(msgspec.Struct, frozen=True):
    """The user who has paused a job, the time and the reason; null where that is not known or was not given."""

    by: str | None
    at: str | None
    reason: str | None


class BarredContender(msgspec.Struct, frozen=True):
    """A contender that an operator keeps from taking a job over, as `ha host drain` does, and until when."""

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


class OtherCommand(msgspec.Struct, frozen=True):
    """A standby that would run another command than the leader, or look for paths on another file system; and why."""

    contender: str
    why: str


class LastHour(msgspec.Struct, frozen=True):
    """How often a job failed, and was taken over, in the last hour; at most as many failures as are kept."""

    failures: int
    takeovers: int


class JobSummary(msgspec.Struct, frozen=True):
    """One job.

    Attributes:
        job: its name.
        state: as Flink names it; null if this version does not know it.
        epoch: of its newest leadership.
        lease: who attests it: ``zookeeper`` or ``hdfs``. Without a leader, why: ``released``, ``session-gone``,
            ``expired``. ``damaged`` if there is no lease, ``unreachable`` if its root does not answer,
            ``not-yours`` if this user may not read its directory.
        holder: the contender that holds the lease.
        last_holder: the one that held it last, if nobody does now.
        overdue: whether the holder has not renewed the lease in time; nobody may lead then.
        since: when the lease was renewed or given back last, by the clock of the file system, if it is overdue or
            nobody holds it; null otherwise, and where an operator's mark hides it.
        contenders: that have announced themselves; null if ZooKeeper does not answer.
        checkpoint_at: when its checkpoints changed last, by the clock of the file system; null without any.
        rows_per_second: that the newest batches of all its queries went through, together; null if no query says it.
        paused: set while an operator has paused it: no process takes over.
        next_try: set while its leader waits, because the job keeps failing.
        barred: contenders that may not take it over now.
        unguarded: number of its queries that no takeover goes on with, as its driver or sidecar has seen.
        repeated: number of those that are not exactly once: a takeover may repeat rows of theirs.
        others: standbys whose takeover would change what the job does.
        program: what its leader runs, or ran: a stored version, or the name of a program; null if nobody has said it.
        last_hour: null if it has neither failed nor been taken over.
    """

    job: str
    state: str | None = None
    epoch: int | None = None
    lease: str = DAMAGED
    holder: str | None = None
    last_holder: str | None = None
    overdue: bool = False
    since: str | None = None
    contenders: list[str] | None = None
    checkpoint_at: str | None = None
    rows_per_second: float | None = None
    paused: JobPause | None = None
    next_try: NextTry | None = None
    barred: tuple[BarredContender, ...] = ()
    unguarded: int = 0
    repeated: int = 0
    others: tuple[OtherCommand, ...] = ()
    program: str | None = None
    last_hour: LastHour | None = None


def summaries(admin: JobAdmin, leases: Leases) -> list[JobSummary]:
    """Return all jobs at a glance, by name. One whose record cannot be read is shown as damaged."""
    found = []
    for job in admin.jobs():
        try:
            found.append(summary(admin, job, leases))
        except NoLeader:
            found.append(JobSummary(job))
        except PermissionDenied:
            found.append(JobSummary(job, lease=NOT_YOURS))
        except StoreError:  # its root of the group; jobs at other roots are shown
            found.append(JobSummary(job, lease=UNREACHABLE))
    return found


def summary(admin: JobAdmin, job: str, leases: Leases) -> JobSummary:
    """Return a job at a glance. Costs the NameNode four lists; after a failure or a takeover some more, for an hour."""
    # NoLeader: also if its record holds no lease. NotLeader: leaders kept claiming the job meanwhile.
    return steady(lambda: _look(admin, check_job(job), leases))


def _look(admin: JobAdmin, job: str, leases: Leases) -> JobSummary:
    directory, entries, record, lease = leases.look(admin, job)
    checkpoints, epoch = directory.list(CHECKPOINTS), directory.leader.epoch
    names = [each.name for each in entries]
    found = pick(names)
    newest = newest_of(each.name for each in checkpoints)
    # A checkpoint is an old entry with a new name: only the folder's time tells when that was.
    contenders, running = leases.contenders(admin, job), runs(names)
    changed = max((each.modified_ms for each in entries if each.name == CHECKPOINTS), default=0)
    return JobSummary(
        job,
        _state(found.status if found is not None else None, led=lease.held),
        epoch,
        lease.said,
        lease.contender if lease.held else None,
        lease.contender if epoch and not lease.held else None,
        lease.held and not lease.in_time,
        at_time(lease.changed_ms) if epoch and lease.changed_ms and not lease.in_time else None,
        contenders,
        at_time(changed) if newest and changed else None,
        _rows_per_second(newest),
        _paused(present(record)),
        _next_try(directory) if lease.held and found is not None and found.status is Status.RESTARTING else None,
        _barred(record),
        *unguarded_in(names),
        _others(names, lease.contender if lease.held else None, contenders),
        running.program or None if running is not None else None,
        _last_hour(directory, entries),
    )


def newest_of(names: Iterable[str]) -> list[Checkpoint]:
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
    """Read it, of a job that is being restarted; others cost no further calls."""
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


def _others(names: Iterable[str], holder: str | None, contenders: list[str] | None) -> tuple[OtherCommand, ...]:
    present, found = runs(names), others(names).items()
    if present is None:
        return ()
    here = [each for each in found if each[0] != holder and (contenders is None or each[0] in contenders)]
    return tuple(OtherCommand(name, contradiction(name, would, present)) for name, would in sorted(here))


def _last_hour(directory: FencedDirectory, entries: Iterable[Entry]) -> LastHour | None:
    """Count what is new in the folders that have changed in this hour; of the others no list is made."""
    since_ms = (time.time() - HOUR_S) * 1000
    changed = {each.name for each in entries if each.name in (EXCEPTIONS, HISTORY) and each.modified_ms >= since_ms}
    failed = directory.list(EXCEPTIONS) if EXCEPTIONS in changed else ()
    granted = grants.read(directory.list(HISTORY)) if HISTORY in changed else ()
    found = LastHour(
        sum(each.modified_ms >= since_ms for each in failed),
        sum(each.at_ms >= since_ms and each.epoch > 1 for each in granted),
    )
    return found if found != LastHour(0, 0) else None


def _barred(record: Record) -> tuple[BarredContender, ...]:
    """Those whose time is not over, by this host's clock."""
    found = [each for _, each in sorted(bars(record).items()) if each.until > time.time()]
    return tuple(
        BarredContender(each.contender, at_time(each.until * 1000), each.by or None, each.reason or None)
        for each in found
    )


def _state(stored: Status | None, *, led: bool) -> str | None:
    """Return a job's state as people see it: a running one is suspended while it has no leader."""
    if stored is None:
        return None
    if led or stored is Status.CREATED or stored.globally_terminal:
        return stored.value
    return Status.SUSPENDED.value
