"""Batch: a batch to be published, with its input and its time, from the checkpoint of its query.

Spark writes ``offsets/N`` before batch N begins, and reads it again if it does the batch again. So the input, the
watermark and the time are the same in every try, unlike those of a clock or of a progress report.
"""

import hashlib
from dataclasses import dataclass

from ha.checkpoints import contents
from ha.leadership.fenced_rename import FencedRename
from ha.outputs.commit_trigger import Moment
from ha.outputs.lines import NO_QUERY, Line
from leader.errors import InvalidSettings
from store.errors import NotFound

MOST = 64 << 20  # longest file of offsets

ELSEWHERE = (
    "The query's checkpoint is not below the leader directory, where its batches are fenced: give the query a "
    "queryName instead of a checkpointLocation of its own."
)

NOBODYS = Line(NO_QUERY, "")  # line of a program without a streaming query


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch, as the query's checkpoint has planned it; it is planned once, and repeated as it was."""

    number: int  # that Spark gave to it
    line: Line = NOBODYS  # the query with its checkpoint
    plan: str = ""  # digest of its input, the same in each try; empty if unknown
    moment: Moment | None = None  # when it was; None if unknown
    part: int = 0  # how many writes of the same batch came before this one: a function may split a batch
    # Whether the output gets each batch of the query, as it does without a function that may skip some.
    every: bool = False

    def __str__(self) -> str:
        return f"batch {self.number}{f', write {self.part + 1},' if self.part else ''} of {self.line}"


def plan_of(found: contents.Offsets, offsets: bytes) -> str:
    """Return the digest of what a batch was planned to be, by its ``offsets/N``, as they were read and as they are."""
    # A file source only says which entry of its log is the newest, so the time of the plan counts as well: to plan a
    # batch again takes another time. The settings in the file are left out: a rescaled query gets new ones.
    if found.planned:
        return found.planned
    said = f"{found.watermark_ms} {found.time_ms}".encode()
    return hashlib.sha256(b"\n".join([said, *offsets.strip().split(b"\n")[2:]])).hexdigest()[:16]


def planned(renames: FencedRename, checkpoint: str, line: Line, number: int) -> Batch:
    """Return a batch of a query, by the number that Spark gave to it; it costs one read."""
    # InvalidSettings: the checkpoint is not below the root of the renames, or cannot be understood.
    path = f"{checkpoint}/offsets/{number}"
    data = _read(renames, path)
    try:
        found = contents.offsets(data)
    except contents.Unreadable as error:
        raise InvalidSettings(f"When batch {number} was is not known: {path} cannot be read. {error}") from error
    return Batch(number, line, plan_of(found, data), Moment(found.watermark_ms, found.time_ms))


def query_id(renames: FencedRename, checkpoint: str) -> str:
    """Return Spark's id of the query with this checkpoint; it costs one read."""
    path = f"{checkpoint}/metadata"
    try:
        return contents.query_id(_read(renames, path))
    except contents.Unreadable as error:
        raise InvalidSettings(f"Which query this is is not known: {path} cannot be read. {error}") from error


def _read(renames: FencedRename, path: str) -> bytes:
    try:
        return renames.do(lambda files: files.read(path, MOST))
    except NotFound as error:
        renames.check()
        raise InvalidSettings(ELSEWHERE) from error
