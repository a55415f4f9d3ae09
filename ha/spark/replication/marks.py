"""Marks: names that record a promotion, on both sides.

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

PROMOTED = "promoted="  # begins the name of the entry that ends a replication for good

LINE = "line="

FIRST = "first"  # the line of a job that was never promoted

LOOKS = 3
"""Tries to find a replica whose leader changes. A store that does not answer is asked once: a takeover waits for it."""


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
