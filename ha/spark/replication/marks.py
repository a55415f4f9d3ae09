"""Marks: names by which a promotion is found again, at the side that was left as well.

    <there>/<job>.replica/<leader directory>/promoted=<line>   the replica of that line was promoted
    <root>/<job>/<leader directory>/line=<line>                the line of the job itself; none: it was never promoted

A promotion begins a new line. So a job that was promoted away, and back, is not taken for the one that was left.
"""

import uuid

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from ha.spark.replication.report import REPORT, decoded, replica_of
from leader.errors import Fenced, NoLeader
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from store.bounded import BoundedFiles
from store.errors import NotFound

PROMOTED = "promoted="
"""Begins the name of the entry that ends a replication for good."""

LINE = "line="

FIRST = "first"
"""The line of a job that was never promoted."""

LOOKS = 3
"""Tries to find a replica whose leader changes. A store that does not answer is asked once: a takeover waits for it."""


def promoted(replica: FencedDirectory) -> bool:
    """Whether the replica was promoted, or is being promoted."""
    return bool(_after(PROMOTED, replica))


def mark(replica: FencedDirectory) -> None:
    """End the replication: whoever leads the replica finds the mark before his next round.

    Raises:
        Fenced: another process leads the replica now: mark it again.
        StoreError: the store refused it, or its outcome stayed unknown.
    """
    if promoted(replica):
        return
    try:
        line = decoded(replica.read(REPORT)).line
    except NotFound:
        line = FIRST
    replica.make_folder(f"{PROMOTED}{line}")


def unmark(replica: FencedDirectory) -> None:
    """Take the mark of a promotion away, so that the place can be used once more.

    Raises:
        Fenced: another process leads the replica.
        StoreError: the store refused it, or its outcome stayed unknown.
    """
    for each in _after(PROMOTED, replica):
        replica.delete(f"{PROMOTED}{each}")


def line_of(job: FencedDirectory) -> str:
    """Return the line of a job."""
    return next(iter(_after(LINE, job)), FIRST)


def begin_line(job: FencedDirectory) -> None:
    """Begin a new line: no promotion of a replica of the former one counts any more."""
    new = f"{LINE}{uuid.uuid4().hex}"
    former = _after(LINE, job)
    if former:
        job.rename(f"{LINE}{former[0]}", new)
    else:
        job.make_folder(new)


def promoted_away(there: BoundedFiles, job: FencedDirectory, call_timeout: float) -> bool:
    """Whether the replica of this line of a job was promoted.

    Args:
        there: the store of the replica.
        job: the leader directory of the job.
        call_timeout: seconds for each call.

    Raises:
        NotLeader: another process leads the job, or others take turns at the replica.
        StoreError: a store did not answer.
    """
    admin = JobAdmin(there, None, call_timeout)
    looks = Retrying(stop=stop_after_attempt(LOOKS), retry=retry_if_exception_type(Fenced), reraise=True)
    try:
        lines = looks(lambda: _after(PROMOTED, admin.directory(replica_of(job.job))))
    except NoLeader:
        return False  # it was never replicated to there
    return bool(lines) and line_of(job) in lines


def _after(start: str, directory: FencedDirectory) -> list[str]:
    return [each.name.removeprefix(start) for each in directory.list() if each.name.startswith(start)]
