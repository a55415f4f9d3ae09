"""Report: the state of a replica, in one small file of its leader directory; and names that record a promotion.

    <there>/<job>.replica/<leader directory>/replica.json      the report; for people and for a promotion
    <there>/<job>.replica/<leader directory>/promoted=<line>   the replica of that line was promoted
    <root>/<job>/<leader directory>/line=<line>                the line of the job itself; none: it was never promoted

A promotion begins a new line. So a job that was promoted away, and back, is not taken for the one that was left.
"""

import time
import uuid

import msgspec
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from leader.errors import Fenced, NoLeader
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound

REPORT = "replica.json"

SUFFIX = ".replica"  # ends the name of the job, at the other side, whose leader is the replicator

PROMOTED = "promoted="  # begins the name of the entry that ends a replication for good

LINE = "line="

FIRST = "first"  # the line of a job that was never promoted

LOOKS = 3
"""Tries to find a replica whose leader changes. A store that does not answer is asked once: a takeover waits for it."""


class ReplicatedQuery(msgspec.Struct, frozen=True):
    """One query, as the newest round has seen it."""

    name: str  # of the query
    batch: int | None = None  # the newest batch from which it can resume; None if there is none
    newest: int | None = None  # the newest batch that the source had committed
    # The newest batch that the source had begun; its rows, and those of batches in between, may be published.
    begun: int | None = None
    level_at: float = 0.0  # when the replica had all that the source had committed, in seconds since 1970; 0 if never
    problem: str = ""  # why the newest round moved nothing of it; empty if that is not so

    @property
    def behind(self) -> int:
        """Number of batches that the source had committed and the replica has not."""
        if self.newest is None:
            return 0
        return max(0, self.newest - (-1 if self.batch is None else self.batch))


class ReplicaReport(msgspec.Struct, frozen=True):
    """One replica: of which URI and line, as of the seconds since 1970."""

    source: str
    at: float
    queries: list[ReplicatedQuery]
    line: str = FIRST


def today() -> float:
    """Return the seconds since 1970 by this host's wall clock, for display."""
    return time.time()


def replica_of(job: str) -> str:
    """Return the name of the job that a replicator leads at the other side."""
    return f"{job}{SUFFIX}"


def encoded(report: ReplicaReport) -> bytes:
    """Return the file."""
    return msgspec.json.format(msgspec.json.encode(report)) + b"\n"


def decoded(data: bytes) -> ReplicaReport:
    """Read the file."""
    try:
        return msgspec.json.decode(data, type=ReplicaReport)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"The replica's {REPORT} says something else ({error}).") from error


def promoted(replica: FencedDirectory) -> bool:
    """Whether the replica was promoted, or is being promoted."""
    return bool(_after(PROMOTED, replica))


def mark(replica: FencedDirectory) -> None:
    """End the replication: the leader of the replica finds the mark before its next round."""
    if promoted(replica):
        return
    try:
        line = decoded(replica.read(REPORT)).line
    except NotFound:
        line = FIRST
    replica.make_folder(f"{PROMOTED}{line}")


def unmark(replica: FencedDirectory) -> None:
    """Take the mark of a promotion away, so that the place can be used once more."""
    for each in _after(PROMOTED, replica):
        replica.delete(f"{PROMOTED}{each}")


def line_of(job: FencedDirectory) -> str:
    """Return the line of a job."""
    return next(iter(_after(LINE, job)), FIRST)


def begin_line(job: FencedDirectory) -> None:
    """Begin a new line: promotions of a replica of the former one stop counting."""
    new = f"{LINE}{uuid.uuid4().hex}"
    former = _after(LINE, job)
    if former:
        job.rename(f"{LINE}{former[0]}", new)
    else:
        job.make_folder(new)


def promoted_away(there: BoundedFiles, job: FencedDirectory, call_timeout: float) -> bool:
    """Whether the replica of this line of a job was promoted there; ``call_timeout`` is in seconds, for each call."""
    admin = JobAdmin(there, None, call_timeout)
    looks = Retrying(stop=stop_after_attempt(LOOKS), retry=retry_if_exception_type(Fenced), reraise=True)
    try:
        lines = looks(lambda: _after(PROMOTED, admin.directory(replica_of(job.job))))
    except NoLeader:
        return False  # it was never replicated to there
    return bool(lines) and line_of(job) in lines


def _after(start: str, directory: FencedDirectory) -> list[str]:
    return [each.name.removeprefix(start) for each in directory.list() if each.name.startswith(start)]
