"""Batch: a batch to be published, by the checkpoint of its query, and whether its output takes it.

Spark writes ``offsets/N`` before batch N begins, and reads it again if it does the batch again. So the input, the
watermark and the time are the same in every try, unlike those of a clock or of a progress report.

Only the query that has published a batch can repeat it, and only as it was planned. Anything else that comes under a
number that is taken would be lost without a word, so it is refused. See :mod:`ha.outputs.lines` and decision 79.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from ha.checkpoints import contents
from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.lines import NO_QUERY, Line, Lines
from ha.outputs.partition_commit import Moment
from ha.outputs.record import Record
from leader.errors import ForeignBatch, InvalidSettings, Unreadable
from store.errors import NotFound, StoreError

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


def offsets_of(renames: FencedRename, checkpoint: str, number: int) -> bytes:
    """Return ``offsets/N`` of a batch; it costs one read."""
    return _read(renames, f"{checkpoint}/offsets/{number}")


def planned(line: Line, number: int, offsets: bytes) -> Batch:
    """Return a batch of a query, by the number that Spark gave to it and its ``offsets/N``."""
    try:
        found = contents.offsets(offsets)
    except contents.Unreadable as error:
        raise InvalidSettings(
            f"When batch {number} was is not known: offsets/{number} of {line} cannot be read. {error}"
        ) from error
    return Batch(number, line, plan_of(found, offsets), Moment(found.watermark_ms, found.time_ms))


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


class Admission:
    """Of one output, for the leader that owns it. Its methods raise what those of the renames do.

    Attributes:
        own: path of the folder that only the present journal has.
    """

    def __init__(self, folder: OutputFolder) -> None:
        self._folder, self._renames = folder, folder.renames
        self._lines, self.own = Lines(), ""

    def load(self, names: Iterable[str]) -> None:
        """Take note of the names in the output's folder."""
        self._lines = Lines(names)

    def id_of(self, batch: Batch) -> int:
        """Return the id of a batch of the present query."""
        return self._lines.id_of(batch.number) + batch.part

    def is_new(self, batch: Batch, newest: int) -> bool:
        """Whether a batch is the next one after the newest that is decided (-1: none); False if decided before."""
        # ForeignBatch: it is neither.
        name = None
        try:
            name = self._lines.admitting(batch.line, batch.number, newest)
        except ForeignBatch as error:
            raise self._foreign(batch, newest, f"{error}: another query writes, or this one has begun again") from error
        if name is not None:
            self._enter(name)
        number = self.id_of(batch)
        if number > newest:
            self.lift(batch.number + 1, number + 1)  # a batch that is written in parts takes several ids
            self._mark(batch)
            return True
        is_newest = self._lines.number_of(newest) == batch.number
        if not batch.plan or (is_newest and (plan := self._plan_of(newest)) in ("", batch.plan)):
            return False
        if not self._lines.may_follow:
            what = f"and batches after it, up to {newest}"
            if is_newest:
                what = "with other rows" if plan else "and the record of its rows is gone or damaged"
            raise self._foreign(
                batch, newest, f"has published that batch as {number}, {what}; its checkpoint was put back"
            )
        self._enter(self._lines.following(batch.line, batch.number, newest))
        self._mark(batch)
        return True

    def _mark(self, batch: Batch) -> None:
        """Note the batch from which on the query gives the output each one, or that it has stopped doing so."""
        old = {name for name, since in self._lines.marks.items() if not batch.every or since > batch.number}
        if batch.every and len(old) == len(self._lines.marks):
            self._enter(self._lines.marking(batch.number))
        for name in old:
            self._renames.remove(self._folder.at(name))
        self._lines = self._lines.having(without=old)

    def check(self, batch: Batch, newest: Callable[[], int]) -> None:
        """Refuse a batch of another query (``ForeignBatch``), before anything of the output is touched for it."""
        if (current := self._lines.current) is not None and current.id != batch.line.id and not self._lines.may_follow:
            self.is_new(batch, newest())

    def lift(self, number: int, to: int) -> None:
        """Have a batch that is not decided, and all later ones, go on from a higher id."""
        if self._lines.id_of(number) >= to:
            return
        self._enter(self._lines.lifting(number, to))
        for each in self._lines.surplus():
            with suppress(StoreError):  # the next one tries again
                self._renames.remove(self._folder.at(each))
                self._lines = self._lines.having(without={each})

    def _enter(self, name: str) -> None:
        """Add an entry to the lines."""
        # By a rename out of the own folder: one that is executed late, when the output is another's, finds nothing.
        made = f"{self.own}/{uuid.uuid4().hex}"
        self._renames.make_folder(made)
        self._renames.move(made, self._folder.at(name))
        self._lines = self._lines.having(name)

    def record_of(self, batch: Batch) -> Record | None:
        """Return what a complete batch consists of; None if that is not known any more."""
        return self._record(self.id_of(batch))

    def _record(self, batch: int) -> Record | None:
        with suppress(Unreadable):
            return self._folder.record(layout.done(batch))
        return None

    def _plan_of(self, batch: int) -> str | None:
        """Return the digest of the input of a complete batch; empty if its writer had none, None without a record."""
        found = self._record(batch)
        return found.plan if found is not None else None

    def _foreign(self, batch: Batch, newest: int, why: str) -> ForeignBatch:
        return ForeignBatch(
            f"Output {self._folder.name!r} does not take {batch}: it {why}. Nothing was written or dropped. Give the "
            "query the checkpoint that it had (adopt it under a new name, or rewind it), give it an output of "
            f"its own, or let the output go on with batch {newest + 1}, whatever comes twice then: "
            f"`ha output begin-anew {self._renames.job} {self._folder.name}`."
        )
