"""Reading an output's journal from outside: its batches, and whether the files that were decided are there.

The job may be running. A batch goes from ``ready`` to ``done``, and its partitions from ``ready`` to their places. So
each look begins where things leave: what is found nowhere is nowhere.
"""

import posixpath
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TypeVar

import msgspec

from ha.outputs import layout
from ha.outputs.looking import Looking, sizes
from ha.outputs.merge_plan import Merge, merge_in
from ha.outputs.record import FILES, LOST, TARGET, Record, Target
from ha.outputs.region_marks import RegionRecord
from ha.outputs.regional import behind
from leader.errors import Fenced, Unreadable
from leader.job.fenced_directory import LOOKS, FencedDirectory
from leader.layout.names import OUT
from leader.layout.packed_names import read
from store.bounded import BoundedFiles
from store.files import Entry

THREADS = 8
"""Batches that are looked at side by side."""

T = TypeVar("T")


class Condition(StrEnum):
    """The state of a batch in the output."""

    COMPLETE = "complete"
    UNFINISHED = "unfinished"
    LOST = "lost"
    GONE = "gone since"
    UNKNOWN = "unknown"


class JournalOutput(msgspec.Struct, frozen=True):
    """One output of a job.

    Attributes:
        name: given by the program.
        folder: of its journal, in the leader directory.
        target: path of the directory in which its batches appear; empty if a version without records has made it.
        unfinished: batches that are decided and not complete.
        thousands: numbers of the folders of complete batches.
        regions: of a regional output; each has a journal of its own, of its name.
        complete_up_to: the batch up to which all regions are complete; -1 if none is, or without regions.
        behind: regions that have failed or are late.
        flat: whether a partition of a batch is one file, so that files can be merged.
    """

    name: str
    folder: str
    target: str
    unfinished: list[int]
    thousands: list[int]
    regions: list[str] = []
    complete_up_to: int = -1
    behind: list[RegionRecord] = []
    flat: bool = False


class JournalBatch(msgspec.Struct, frozen=True):
    """One batch.

    Attributes:
        output: its name.
        batch: id.
        condition: one of :class:`Condition`; of a batch that was only listed, complete or unfinished.
        partitions: how many it has.
        files: likewise.
        bytes: of all files.
        missing: paths below the target of the files that are not there, each behind its partition.
        accepted: how many files an operator has given up.
        rows: how many it has; None if nobody has told, as Spark's own writer does not.
    """

    output: str
    batch: int
    condition: str
    partitions: int = 0
    files: int = 0
    bytes: int = 0
    missing: list[str] = []
    accepted: int = 0
    rows: int | None = None


class JournalReader:
    """The outputs of one job; safe to use from several threads. Its methods raise StoreError if a store fails."""

    def __init__(self, find: Callable[[], FencedDirectory]) -> None:
        """Find the leader directory.

        Args:
            find: returns it; asked again when another leader has claimed the job.
        """
        self._find = find
        self._directory = find()

    def outputs(self) -> list[JournalOutput]:
        """Return the outputs of the job."""
        found = []
        for folder in self._names(OUT):
            home = f"{OUT}/{folder}"
            names = self._names(home)
            try:
                target = read(TARGET, Target, names)
            except Unreadable:
                target = None
            unfinished = layout.ids(self._names(f"{home}/{layout.READY}"))
            thousands = layout.ids(self._names(f"{home}/{layout.DONE}"))
            name = folder.rpartition("-")[0] or folder
            path, flat = (target.path, target.flat) if target else ("", False)
            regions = sorted(each.removeprefix(layout.REGION) for each in names if each.startswith(layout.REGION))
            marks = layout.mark(names), behind(names)
            found.append(JournalOutput(name, home, path, unfinished, thousands, regions, *marks, flat))
        return found

    def ids(self, output: JournalOutput, batches: range) -> Iterator[list[int]]:
        """Return the ids of the complete batches among these, a thousand at a time."""
        for thousand in output.thousands:
            start = thousand * layout.BUCKET
            if start < batches.stop and start + layout.BUCKET > batches.start:
                found = layout.ids(self._names(f"{output.folder}/{layout.DONE}/{thousand}"))
                yield [each for each in found if each in batches]

    def listed(self, output: JournalOutput, ids: list[int]) -> Iterator[JournalBatch]:
        """Return what these batches consist of."""
        yield from self._side_by_side(lambda batch: self._read(output, batch)[0], ids)

    def verified(self, output: JournalOutput, ids: list[int], target: BoundedFiles) -> Iterator[JournalBatch]:
        """Look for every file of these batches; ``target`` is the directory in which they appear."""
        looking = Looking(target, lambda thousand: self.merges(output, thousand))
        yield from self._side_by_side(lambda batch: self._verify(output, batch, looking), ids)

    def _side_by_side(self, what: Callable[[int], T], ids: list[int]) -> Iterator[T]:
        with ThreadPoolExecutor(THREADS, thread_name_prefix="ha-output") as threads:
            yield from threads.map(what, ids)

    def _read(self, output: JournalOutput, batch: int) -> tuple[JournalBatch, Record, Record]:
        """Return a batch as its record says, the record, and what of it was given up."""
        condition, names = Condition.UNFINISHED, []
        if batch in output.unfinished:
            names = self._names(f"{output.folder}/{layout.ready(batch)}")
        if not names:
            condition, names = Condition.COMPLETE, self._names(f"{output.folder}/{layout.done(batch)}")
        try:
            record, given_up = read(FILES, Record, names), read(LOST, Record, names)
        except Unreadable:
            record = given_up = None
        if record is None:
            return JournalBatch(output.name, batch, Condition.UNKNOWN), Record({}), Record({})
        found = JournalBatch(
            output.name, batch, condition, len(record.partitions), record.files, record.bytes,
            accepted=given_up.files if given_up else 0, rows=record.row_count,
        )  # fmt: skip
        return found, record, given_up or Record({})

    def _verify(self, output: JournalOutput, batch: int, looking: Looking) -> JournalBatch:
        found, record, given_up = self._read(output, batch)
        if found.condition == Condition.UNKNOWN:
            return found
        missing = record.without(given_up)
        if found.condition == Condition.UNFINISHED:
            missing = missing.without(self._here(output, batch, record))
        missing = looking.missing(batch, missing, complete=batch not in output.unfinished)
        condition = found.condition
        if missing.files:
            condition = Condition.LOST if found.condition == Condition.UNFINISHED else Condition.GONE
        names = [
            posixpath.join(
                layout.folder(partition, batch, flat=record.flat), layout.file(batch, name, flat=record.flat)
            )
            for partition, files in sorted(missing.partitions.items())
            for name in sorted(files)
        ]
        return msgspec.structs.replace(found, condition=condition, missing=names)

    def _here(self, output: JournalOutput, batch: int, record: Record) -> Record:
        rows = f"{output.folder}/{layout.ready(batch)}/{layout.ROWS}"
        return Record({each: sizes(self._list(f"{rows}/{each}".rstrip("/"))) for each in record.partitions})

    def merges(self, output: JournalOutput, thousand: int) -> Iterator[Merge]:
        """Return the merges of a thousand batches, those that are not done included."""
        for folder in (layout.MERGING, f"{layout.MERGED}/{thousand}"):  # in the order in which they go
            for name in self._names(f"{output.folder}/{folder}"):
                found = merge_in(self._names(f"{output.folder}/{folder}/{name}"))
                if found is not None and found.thousand == thousand:
                    yield found

    def _names(self, folder: str) -> list[str]:
        return sorted(entry.name for entry in self._list(folder))

    def _list(self, folder: str) -> list[Entry]:
        for _ in range(LOOKS):
            try:
                return self._directory.list(folder)
            except Fenced:
                self._directory = self._find()
        return self._directory.list(folder)
