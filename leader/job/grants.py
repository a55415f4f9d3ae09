"""Grants of the past: who led a job, why the lease was free, and how each leadership ended.

    history/<epoch>-<session id>~<reason>~<contender>     by the leader, soon after its grant
    history/<epoch>-<session id>~adopted~<contender>      by one that has taken the leadership up: it is no other grant
    history/<epoch>-<session id>~end.<cause>~<contender>  by the leader, before it gives the lease back
    history/<epoch>-<session id>~by.<operator>~<contender>  by the operator who asked it to

Each is tried once: a leader does not wait for a line of history. So a line can be missing, above all the end of a
leader that was killed; the next grant's reason then says what its successor saw. No epoch is missing in the list.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from leader.layout.names import ADOPTED, HISTORY, LeaderDirectory
from store.bounded import BoundedFiles
from store.files import Entry
from store.outcome import Outcome

UNRECORDED = "unrecorded"  # the reason and the end of a leadership without a line

_LINE = re.compile(
    r"([0-9]{10})-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"~(?:([a-z-]+)|end\.([A-Za-z0-9.-]{1,64})|by\.([A-Za-z0-9.-]{1,64}))~([A-Za-z0-9][A-Za-z0-9._-]{0,63})"
)

MOST_MISSING = 1000  # epochs without a line that are listed in a row; a longer gap is not one of short leaderships


@dataclass(frozen=True, slots=True)
class PastGrant:
    """One grant of the past."""

    epoch: int  # of the grant
    session_id: str  # of the grant; empty if unrecorded
    reason: str  # why the lease could be seized, in one word
    contender: str  # name of the leader; empty if unrecorded
    ended: str = ""  # how the leadership ended, in one word; empty for the newest one, which may still last
    by: str = ""  # the operator who asked for that end; empty if none did
    at_ms: int = 0  # time of the grant, in milliseconds since 1970 by the file system's wall clock; for display only
    adopted_by: str = ""  # the contender that has taken the leadership up after its process had died; empty if none has

    @classmethod
    def parse(cls, name: str, at_ms: int) -> "PastGrant | None":
        """Read the name of one line of history; None if it is none."""
        match = _LINE.fullmatch(name)
        if not match:
            return None
        reason, ended, by, contender = match[3], match[4], match[5], match[6]
        adopted_by = contender if reason == ADOPTED else ""
        return cls(int(match[1]), match[2], reason or UNRECORDED, contender, ended or "", by or "", at_ms, adopted_by)


def read(entries: Iterable[Entry]) -> list[PastGrant]:
    """Read the entries of a job's history; returns the grants, oldest first. Names that do not parse are left out."""
    found: dict[tuple[int, str], PastGrant] = {}
    lines = filter(None, (PastGrant.parse(entry.name, entry.modified_ms) for entry in entries))
    for line in sorted(lines, key=lambda each: (each.reason == ADOPTED, each.at_ms)):  # the grant itself comes first
        known = found.setdefault((line.epoch, line.session_id), line)
        found[line.epoch, line.session_id] = replace(
            known,
            reason=line.reason if known.reason == UNRECORDED else known.reason,
            at_ms=min(known.at_ms, line.at_ms),
            ended=known.ended or line.ended,
            by=known.by or line.by,
            adopted_by=line.adopted_by or known.adopted_by,
        )
    return _complete(sorted(found.values(), key=lambda each: (each.epoch, each.session_id)))


def began_after_ms(entries: Iterable[Entry], epoch: int) -> int:
    """Return a time before which this epoch had not begun, in milliseconds by the file system's clock; 0 if unknown."""
    # Lines of earlier epochs were written before its claim, which took their place away; its own after the grant.
    lines = (PastGrant.parse(entry.name, entry.modified_ms) for entry in entries)
    return max((line.at_ms for line in lines if line is not None and line.epoch < epoch), default=0)


def _complete(grants: list[PastGrant]) -> list[PastGrant]:
    """Add the epochs without a line, and unrecorded ends as the next grant's reason tells them."""
    complete: list[PastGrant] = []
    for grant in grants:
        before = complete[-1].epoch if complete else 0
        if grant.epoch - before <= MOST_MISSING:
            complete += [PastGrant(epoch, "", UNRECORDED, "") for epoch in range(before + 1, grant.epoch)]
        complete.append(grant)
    for number, grant in enumerate(complete[:-1]):
        if not grant.ended:
            after = complete[number + 1].reason
            complete[number] = replace(grant, ended=UNRECORDED if after == "released" else after)
    return complete


def record_end(
    files: BoundedFiles, job: str, leader: LeaderDirectory, cause: str, contender: str, timeout: float
) -> None:
    """Write down how a leadership ends: one try in the background, while its directory is still its own."""
    # The cause is one word of letters, digits, dots and hyphens.
    _write(files, f"{job}/{leader.name}/{HISTORY}/{leader.name}~end.{cause}~{contender}", timeout)


def record_operator(
    files: BoundedFiles, job: str, leader: LeaderDirectory, operator: str, contender: str, timeout: float
) -> None:
    """Write down who asks a leader to end; arguments as for :func:`record_end`."""
    _write(files, f"{job}/{leader.name}/{HISTORY}/{leader.name}~by.{operator}~{contender}", timeout)


def _write(files: BoundedFiles, path: str, timeout: float) -> None:
    files.submit("history", lambda driver: driver.make_directory(path), timeout, _forget)


def _forget(outcome: Outcome[None]) -> None:
    del outcome  # a line of history is not worth a second try
