"""Setting aside: takes published batches away from their readers, into the trash, and brings them back.

The newest goes first and comes back last. So readers see all batches up to some number at any time.
"""

from contextlib import suppress

from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.lines import LINE
from ha.outputs.merging import merges
from ha.outputs.partitions import Partitions
from ha.outputs.record import FILES, Record
from leader.errors import Unreadable
from leader.layout.packed_names import read
from store.errors import AlreadyExists, Invalid, NotFound

STATES = (layout.READY, layout.DONE)


class SettingAside:
    """The journal of one output, for the leader that owns it; no query may run.

    Every method can be repeated after a crash. It raises the errors of the renames, ``AlreadyExists``, and ``Invalid``
    if the record of a batch is damaged.
    """

    def __init__(self, folder: OutputFolder) -> None:
        self._folder, self._renames, self._name = folder, folder.renames, folder.name
        self._partitions = Partitions(folder)

    def put_away(self, stays: int, trash: str) -> None:
        """Move the batches after one into a folder of the trash, those that are not complete included."""
        self._renames.make_folders(trash)
        if merged := [each for each in merges(self._folder) if each.newest > stays]:
            raise Invalid(
                f"Batches up to {merged[0].newest} of output {self._name!r} are in {merged[0].target!r}, so those "
                f"after {stays} cannot be taken away: keep them, with --outputs keep."
            )
        if self._partitions.load(make=False):
            self._partitions.put_back(stays)  # a marker goes before the rows
        for batch, path in sorted(self._batches(stays).items(), reverse=True):
            state, folder = path.partition("/")[0], self._folder.at(path)
            self._renames.make_folders(f"{trash}/{batch}")
            record = self._record(folder, batch)
            for number, partition in enumerate(sorted(record.partitions)):
                with suppress(NotFound):  # not in its place yet, moved before a crash, or its readers have taken it
                    self._move(self._folder.out(record.place(partition, batch)), f"{trash}/{batch}/{number}")
            self._move(folder, f"{trash}/{batch}/{state}")

    def bring_back(self, trash: str) -> None:
        """Move all batches of a folder of the trash to their places and into the journal."""
        known = self._partitions.load(make=False)
        for batch in layout.ids(self._renames.names(trash)):
            names = self._renames.names(f"{trash}/{batch}")
            state = next((each for each in STATES if each in names), None)
            if state is None:
                continue
            record = self._record(f"{trash}/{batch}/{state}", batch)
            partitions = sorted(record.partitions)
            if known:
                self._partitions.open(batch, partitions)
            for number, partition in enumerate(partitions):
                if f"{number}" in names:
                    self._move(f"{trash}/{batch}/{number}", self._folder.out(record.place(partition, batch)))
            folder = self._folder.at(layout.done(batch) if state == layout.DONE else layout.ready(batch))
            self._renames.make_folders(folder.rpartition("/")[0])
            self._move(f"{trash}/{batch}/{state}", folder)

    def number(self, lines: list[str]) -> None:
        """Have the journal contain exactly these entries of lines."""
        there = {each for each in self._folder.names() if each.startswith(LINE)}
        for name in sorted(there - set(lines)):
            self._renames.remove(self._folder.at(name))
        if missing := sorted(set(lines) - there):
            self._renames.make_folders(*map(self._folder.at, missing))

    def _batches(self, stays: int) -> dict[int, str]:
        """Return the folder of each batch after one, by its number, in that of the output."""
        found = {each: layout.ready(each) for each in self._folder.ids(layout.READY)}
        for bucket in self._folder.ids(layout.DONE):
            if (bucket + 1) * layout.BUCKET > stays + 1:
                found |= {each: layout.done(each) for each in self._folder.ids(layout.DONE, f"{bucket}")}
        return {batch: path for batch, path in found.items() if batch > stays}

    def _record(self, folder: str, batch: int) -> Record:
        try:
            record = read(FILES, Record, self._renames.names(folder))
        except Unreadable as error:
            raise Invalid(f"Batch {batch} of output {self._name!r}: its record is damaged. {error}") from error
        if record is None:
            raise Invalid(f"Batch {batch} of output {self._name!r} has no record: what it consists of is not known.")
        return record

    def _move(self, source: str, target: str) -> None:
        if not self._renames.move(source, target):
            raise AlreadyExists(f"{target!r} exists already, so {source!r} cannot go there: move that one away.")
