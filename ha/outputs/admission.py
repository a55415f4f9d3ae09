"""Admission: says whether a batch is the next one of its output, a repetition, or a batch of somebody else.

Only the query that has published a batch can repeat it, and only as it was planned. Anything else that comes under a
number that is taken would be lost without a word, so it is refused. See :mod:`ha.outputs.lines` and decision 79.
"""

import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress

from ha.outputs import layout
from ha.outputs.batch import Batch
from ha.outputs.folder import OutputFolder
from ha.outputs.lines import Lines
from ha.outputs.record import Record
from leader.errors import ForeignBatch, Unreadable
from store.errors import StoreError


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
        """Whether a batch is the next one after the newest that is decided (-1: none); False if it was decided before.

        Raises:
            ForeignBatch: it is neither.
        """
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
        self._renames.do(lambda files: files.make_directory(made))
        self._renames.move(made, self._folder.at(name))
        self._lines = self._lines.having(name)

    def record_of(self, batch: Batch) -> Record | None:
        """Return what a complete batch consists of; None if that is not known any more."""
        with suppress(Unreadable):
            return self._folder.record(layout.done(self.id_of(batch)))
        return None

    def _plan_of(self, batch: int) -> str | None:
        """Return the digest of the input of a complete batch; empty if its writer had none, None without a record."""
        with suppress(Unreadable):
            found = self._folder.record(layout.done(batch))
            return found.plan if found is not None else None
        return None

    def _foreign(self, batch: Batch, newest: int, why: str) -> ForeignBatch:
        return ForeignBatch(
            f"Output {self._folder.name!r} does not take {batch}: it {why}. Nothing was written or dropped. Give the "
            "query the checkpoint that it had (adopt it under a new name, or rewind it), give it an output of "
            f"its own, or let the output go on with batch {newest + 1}, whatever comes twice then: "
            f"`ha output begin-anew {self._renames.job} {self._folder.name}`."
        )
