"""Setting aside: takes published batches away from their readers, into the trash, and brings them back.

The newest goes first and comes back last. So readers see all batches up to some number at any time.
"""

import posixpath
from contextlib import suppress

from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.outputs.merging import merges
from ha.outputs.partitions import Partitions
from ha.outputs.record import FILES, Record
from leader.errors import Unreadable
from leader.layout.packed_names import read
from store.errors import AlreadyExists, Invalid, NotFound

STATES = (layout.READY, layout.DONE)


class SettingAside:
    """The journal of one output, for the leader that owns it; no query may run.

    Every method can be repeated after a crash. It raises what those of the renames do, and ``AlreadyExists`` if
    something is in the way.
    """

    def __init__(self, renames: FencedRename, home: str, name: str) -> None:
        """Connect to nothing yet.

        Args:
            renames: lead to the target.
            home: the output's folder, below the root of the renames.
            name: of the output, for messages.
        """
        self._renames, self._home, self._name = renames, home, name
        self._partitions = Partitions(renames, home)

    def put_away(self, stays: int, trash: str) -> None:
        """Move the batches after one into a folder of the trash, those that are not complete included.

        Raises:
            Invalid: the record of a batch is damaged.
        """
        self._renames.make_folders(trash)
        if merged := [each for each in merges(self._renames, self._home) if each.newest > stays]:
            raise Invalid(
                f"Batches up to {merged[0].newest} of output {self._name!r} are in {merged[0].target!r}, so those "
                f"after {stays} cannot be taken away: keep them, with --outputs keep."
            )
        if self._partitions.load(make=False):
            self._partitions.put_back(stays)  # a marker goes before the rows
        for batch, folder in sorted(self._batches(stays).items(), reverse=True):
            state = folder.removeprefix(f"{self._home}/").partition("/")[0]
            self._renames.make_folders(f"{trash}/{batch}")
            record = self._record(folder, batch)
            for number, partition in enumerate(sorted(record.partitions)):
                with suppress(NotFound):  # not in its place yet, moved before a crash, or its readers have taken it
                    self._move(self._place(record, partition, batch), f"{trash}/{batch}/{number}")
            self._move(folder, f"{trash}/{batch}/{state}")

    def bring_back(self, trash: str) -> None:
        """Move all batches of a folder of the trash to their places and into the journal.

        Raises:
            Invalid: the record of a batch is damaged.
        """
        known = self._partitions.load(make=False)
        for batch in layout.ids(self._names(trash)):
            names = self._names(f"{trash}/{batch}")
            state = next((each for each in STATES if each in names), None)
            if state is None:
                continue
            record = self._record(f"{trash}/{batch}/{state}", batch)
            partitions = sorted(record.partitions)
            if known:
                self._partitions.open(batch, partitions)
            for number, partition in enumerate(partitions):
                if f"{number}" in names:
                    self._move(f"{trash}/{batch}/{number}", self._place(record, partition, batch))
            folder = layout.done(batch) if state == layout.DONE else layout.ready(batch)
            self._renames.make_folders(f"{self._home}/{folder}".rpartition("/")[0])
            self._move(f"{trash}/{batch}/{state}", f"{self._home}/{folder}")

    def number(self, shifts: list[str]) -> None:
        """Have the journal contain exactly these shifts."""
        there = {each for each in self._names(self._home) if each.startswith(layout.SHIFT)}
        for name in sorted(there - set(shifts)):
            self._renames.remove(f"{self._home}/{name}")
        if missing := sorted(set(shifts) - there):
            self._renames.make_folders(*(f"{self._home}/{name}" for name in missing))

    def _batches(self, stays: int) -> dict[int, str]:
        """Return the folder of each batch after one, by its number."""
        found = {each: layout.ready(each) for each in layout.ids(self._names(f"{self._home}/{layout.READY}"))}
        for bucket in layout.ids(self._names(f"{self._home}/{layout.DONE}")):
            if (bucket + 1) * layout.BUCKET > stays + 1:
                done = self._names(f"{self._home}/{layout.DONE}/{bucket}")
                found |= {each: layout.done(each) for each in layout.ids(done)}
        return {batch: f"{self._home}/{folder}" for batch, folder in found.items() if batch > stays}

    def _record(self, folder: str, batch: int) -> Record:
        try:
            record = read(FILES, Record, self._names(folder))
        except Unreadable as error:
            raise Invalid(f"Batch {batch} of output {self._name!r}: its record is damaged. {error}") from error
        if record is None:
            raise Invalid(f"Batch {batch} of output {self._name!r} has no record: what it consists of is not known.")
        return record

    def _move(self, source: str, target: str) -> None:
        if not self._renames.move(source, target):
            raise AlreadyExists(f"{target!r} exists already, so {source!r} cannot go there: move that one away.")

    def _place(self, record: Record, partition: str, batch: int) -> str:
        if not record.flat:
            return f"{self._renames.outside}/{layout.place(partition, batch)}"
        (name,) = record.partitions[partition]
        return posixpath.join(self._renames.outside, partition, layout.file(batch, name, flat=True))

    def _names(self, folder: str) -> list[str]:
        return [entry.name for entry in self._renames.list(folder)]
