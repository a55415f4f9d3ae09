"""Partitions: which partitions of an output have rows that no commit covers, remembered in names beside the records.

    <output>/partitions/pending/<batch>~<time>~<partition>                has rows since that batch
                        committing/<batch>~<time>~<partition>/[<marker>]  its policies run; the marker may be out
                        committed/<commit>~<batch>~<time>~<partition>     they had run when batch <commit> was complete
                        marker=<name>                                     a name that markers have, or had

A note is an empty folder: one request makes it, after its batch was decided and before any row of it is moved. So no
partition with rows is forgotten. It goes from state to state by one rename each. No note is made twice, so what the
store executes late finds nothing. See decision 38.

If processes of one leader take turns, the folder is ``partitions=<times>~<unique>``, and the next one renames it: so
the one before finds no note any more, and no folder for a marker. See decision 71.
"""

import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from ha.leadership.fenced_rename import ATTEMPTS
from ha.outputs.folder import OutputFolder
from ha.outputs.record import Record
from leader.errors import InvalidName
from store.errors import NotFound, StoreError, Unknown

PARTITIONS, PENDING, COMMITTING, COMMITTED = "partitions", "pending", "committing", "committed"

MARKER = "marker="
"""Begins the name of the folder that says how this output calls its markers, for a rewind that removes batches."""

MOST_BYTES = 190  # of a partition's path: a name may have 255 bytes
SLASH = "^"  # stands for a slash: Spark escapes that character in the names of partitions

_NOTE = re.compile(r"(0|[1-9][0-9]{0,18})~(0|[1-9][0-9]{0,18})~(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class PartitionNote:
    """A partition that has rows."""

    batch: int  # with which it became pending
    since_ms: int  # time of that batch; 0 if a crash came between, and it is unknown
    partition: str  # its path

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.batch}~{self.since_ms}~{self.partition.replace('/', SLASH)}"

    @staticmethod
    def parse(name: str) -> "PartitionNote | None":
        """Return what a name says; None if this module has not made it."""
        found = _NOTE.fullmatch(name)
        return PartitionNote(int(found[1]), int(found[2]), found[3].replace(SLASH, "/")) if found else None


class Partitions:
    """The notes of one output, for the leader that owns it.

    Its methods raise what those of the renames do. Whatever they raise, :meth:`load` comes next. Markers have the name
    ``marker`` from now on, and it is ``alone`` if no other process of this leader has the notes.

    Attributes:
        pending: the newest note of each partition that is not committed, those in the middle of it included.
    """

    def __init__(self, folder: OutputFolder, marker: str = "", *, alone: bool = True) -> None:
        self._renames, self._folder, self._alone = folder.renames, folder, alone
        self._home = folder.at(PARTITIONS)
        self._markers = {marker} if marker else set()
        self.pending: dict[str, PartitionNote] = {}
        self._committing: set[PartitionNote] = set()
        self._committed: dict[str, set[str]] = {}

    def load(self, *, make: bool = True) -> bool:
        """Read all notes, and drop those that a newer one makes useless. Costs five lists."""
        # Returns whether there are notes; unless `make` creates the folders that are missing, an output may have none.
        if self._alone:
            self._home = self._folder.taken(PARTITIONS, self._folder.names())[1]
        names = self._names("")
        if not make and COMMITTED not in names:
            return False
        wanted = [PENDING, COMMITTING, COMMITTED, *(f"{MARKER}{each}" for each in sorted(self._markers))]
        if missing := [each for each in wanted if each not in names]:
            above = [self._home] if self._alone else []  # what was taken over is never made again
            self._renames.make_folders(*above, *map(self._at, missing))
        self._markers |= {each.removeprefix(MARKER) for each in names if each.startswith(MARKER)}
        self.pending, self._committing, self._committed = {}, set(), {}
        for name in self._names(COMMITTED):
            if note := PartitionNote.parse(name.partition("~")[2]):
                self._committed.setdefault(note.partition, set()).add(name)
        for state in (PENDING, COMMITTING):
            for name in self._names(state):
                self._take(state, name, PartitionNote.parse(name))
        self.hold()  # or all lists were empty because the folder was gone
        return True

    def take_over(self) -> None:
        """Rename the folder, so that a process which had it finds nothing to commit any more, and no way to a marker.

        Batches that were decided are looked for after that. So one that :meth:`hold` has let through is found.
        """
        if not self._alone:
            self._home = self._folder.take_over(PARTITIONS, self._folder.names())

    def hold(self) -> None:
        """Make sure that no other process has taken over; one that does so later sees all that was decided before."""
        if not self._alone and not self._renames.exists(self._home):
            self._renames.check()
            raise Unknown("Another process commits partitions of this output since: the query's next try goes on.")

    def _take(self, state: str, name: str, note: PartitionNote | None) -> None:
        """Know a note that is there, unless it is of no use."""
        if note is None:
            self._renames.remove(self._at(f"{state}/{name}"))  # a marker that was taken away
            return
        committed = {each.partition("~")[2] for each in self._committed.get(note.partition, ())}
        known = self.pending.get(note.partition)
        if state == PENDING and (note.name in committed or (known is not None and known > note)):
            self._renames.remove(self._at(f"{state}/{name}"))  # made by a call that was executed late
            return
        if known is None or known <= note:
            self.pending[note.partition] = note
        if state == COMMITTING:
            self._committing.add(note)

    def check(self, partitions: Iterable[str]) -> None:
        """Refuse partitions that cannot be noted, because their paths are too long."""
        for each in partitions:
            if len(each.encode()) > MOST_BYTES:
                raise InvalidName(
                    f"Partition {each!r} cannot be remembered: with a partition commit its path may have "
                    f"{MOST_BYTES} bytes."
                )

    def open(self, batch: int, partitions: Iterable[str], since_ms: int = 0) -> list[str]:
        """Note the partitions of a decided batch, before a row of it is moved; take the markers of committed ones away.

        It costs one request for each partition that is not pending, and two or three more for one that is committed.
        Those that were committed before are returned: the batch is late for them.
        """
        late = []
        for partition in partitions:
            known = self.pending.get(partition)
            if known is None:
                note = PartitionNote(batch, since_ms, partition)
                self._make(note)
                late += [partition] if partition in self._committed else []
            elif self._half(partition):
                note = PartitionNote(batch, known.since_ms, partition)
                self._back(note)
            elif known.batch == batch:
                note = known  # before a crash, which may have come before its marker was taken away
            else:
                continue
            self.pending[partition] = note
            if known is not None or partition in self._committed:
                self._withdraw(partition)
        return late

    def note(self, batch: int, record: Record) -> None:
        """Note the partitions of a batch whose time is unknown."""
        self.open(batch, record.partitions)

    def begin(self, note: PartitionNote) -> str:
        """Say that the policies of a partition are run from now on; return the folder in which to make its marker."""
        folder = self._at(f"{COMMITTING}/{note.name}")
        if note not in self._committing:
            self._move(self._at(f"{PENDING}/{note.name}"), folder)
            self._committing.add(note)
        return folder

    def end(self, note: PartitionNote, batch: int) -> None:
        """Say that the policies of a partition have run, when a batch was complete."""
        name = f"{batch}~{note.name}"
        self._move(self._at(f"{COMMITTING}/{note.name}"), self._at(f"{COMMITTED}/{name}"))
        self._committing.discard(note)
        self.pending.pop(note.partition, None)
        for older in self._committed.get(note.partition, set()) - {name}:
            with suppress(StoreError):  # it says the same
                self._renames.remove(self._at(f"{COMMITTED}/{older}"))
        self._committed[note.partition] = {name}

    def drop(self, note: PartitionNote) -> None:
        """Forget a partition that has no rows."""
        for state in (PENDING, COMMITTING):
            self._renames.remove(self._at(f"{state}/{note.name}"))
        self._committing.discard(note)
        self.pending.pop(note.partition, None)

    def put_back(self, stays: int) -> None:
        """Make each partition pending that was announced after a batch, before later batches are put away."""
        # A partition without rows is noticed when it is due.
        for partition in sorted({*self._committed, *self.pending}):
            known, names = self.pending.get(partition), self._committed.get(partition, set())
            newest = max([int(name.partition("~")[0]) for name in names] + ([known.batch] if known else []))
            if newest <= stays and not self._half(partition):
                continue
            if known is None:
                self._make(PartitionNote(max(stays, 0), 0, partition))
            self._withdraw(partition)
            for name in sorted(names):
                self._renames.remove(self._at(f"{COMMITTED}/{name}"))

    def _make(self, note: PartitionNote) -> None:
        self._renames.make_folder(self._at(f"{PENDING}/{note.name}"))

    def _half(self, partition: str) -> list[PartitionNote]:
        """Return the notes of a partition whose policies were begun."""
        return sorted(note for note in self._committing if note.partition == partition)

    def _back(self, note: PartitionNote) -> None:
        """Note a partition again whose policies were begun; a marker that is on its way finds its folder gone."""
        self._make(note)
        for each in self._half(note.partition):
            self._renames.remove(self._at(f"{COMMITTING}/{each.name}"))
            self._committing.discard(each)

    def _withdraw(self, partition: str) -> None:
        """Take a partition's markers away for good."""
        # By renames, not by deletions: one that is executed once more, later, does not take the next marker away.
        for name in sorted(self._markers):
            marker, seen = self._folder.out(partition, name), False
            for _ in range(ATTEMPTS):
                folder = self._at(f"{COMMITTING}/{uuid.uuid4().hex}")
                self._renames.make_folder(folder)
                try:
                    gone = self._renames.move(marker, f"{folder}/{name}")
                except NotFound:
                    gone, first, seen = seen, not seen, True
                    if first:
                        self._renames.acknowledge()  # what is seen may be forgotten
                self._renames.remove(folder)
                if gone:
                    break
            else:
                raise Unknown(f"The marker {marker!r} could not be taken away.")

    def _move(self, source: str, target: str) -> None:
        """Rename a note; by a rename that was executed late it may be there already."""
        try:
            self._renames.move(source, target)
        except NotFound:
            if not self._renames.exists(target):
                raise Unknown(f"{source!r} is gone: what becomes of it is to be read again.") from None
            self._renames.acknowledge()
            if not self._renames.exists(target):
                raise Unknown(f"{target!r} was seen, and is gone: it is to be read again.") from None

    def _names(self, state: str) -> list[str]:
        return self._renames.names(self._at(state))

    def _at(self, path: str) -> str:
        return f"{self._home}/{path}".rstrip("/")
