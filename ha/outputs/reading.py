"""Reading an output's journal from outside: its batches, and whether the files that were decided are there.

The job may be running. A batch goes from ``ready`` to ``done``, and its partitions from ``ready`` to their places. So
each look begins where things leave: what is found nowhere is nowhere.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TypeVar

import msgspec

from ha.outputs import layout
from ha.outputs.lines import Lines
from ha.outputs.merging import Merge, merge_in
from ha.outputs.neighbours import SPARKS_LOG
from ha.outputs.record import FILES, LOST, NOBODY_KNOWS, TARGET, Record, Target
from ha.outputs.regional import RegionRecord, behind
from leader.errors import Fenced, Unreadable
from leader.job.fenced_directory import LOOKS, FencedDirectory
from leader.layout.names import OUT
from leader.layout.packed_names import read
from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Entry

THREADS = 8  # batches that are looked at side by side
LIST_TIMEOUT_S = 20.0  # time for the list of one folder

T = TypeVar("T")


class BatchCondition(StrEnum):
    """The state of a batch in the output."""

    COMPLETE = "complete"
    UNFINISHED = "unfinished"
    LOST = "lost"
    GONE = "gone since"
    UNKNOWN = "unknown"
    GAP = "gap"
    MIXED = "mixed"  # files that were not decided lie among its own
    UNSEEN = "unseen"  # by Spark's readers
    UNREAD = "unread"  # a reader of the whole output fails, or gets other rows than were published


class JournalOutput(msgspec.Struct, frozen=True):
    """One output of a job."""

    name: str  # given by the program
    folder: str  # of its journal, in the leader directory
    target: str  # path of the directory in which its batches appear; empty if a version without records has made it
    unfinished: list[int]  # batches that are decided and not complete
    thousands: list[int]  # numbers of the folders of complete batches
    regions: list[str] = []  # of a regional output; each has a journal of its own, of its name
    complete_up_to: int = -1  # the batch up to which all regions are complete; -1 if none is, or without regions
    behind: list[RegionRecord] = []  # regions that have failed or are late
    flat: bool = False  # whether a partition of a batch is one file, so that files can be merged
    lines: list[str] = []  # names of the entries that say whose batches it has: see `ha.outputs.lines`
    replayed: int = 0  # batches that were done again, and whose rows were dropped because they were published before
    place: str = ""  # of a table or a topic its kind and its name; nothing is at the path then
    format: str = ""  # of its files; empty if unknown


class JournalBatch(msgspec.Struct, frozen=True):
    """One batch."""

    output: str  # its name
    batch: int  # id
    condition: str  # one of `BatchCondition`; of a batch that was only listed, complete or unfinished
    partitions: int = 0  # how many it has
    files: int = 0  # how many it has
    bytes: int = 0  # of all files
    missing: list[str] = []  # paths below the target of the files that are not there, each behind its partition
    surplus: list[str] = []  # the same for files that readers see among its own, and that were not decided
    accepted: int = 0  # how many files an operator has given up
    rows: int | None = None  # how many it has; None if unknown, as from Spark's own writer
    after: int = NOBODY_KNOWS  # id of the batch that was decided before it; -1 for the first one, -2 if unknown
    plan: str = ""  # digest of its input; empty if unknown
    why: str = ""  # of a gap, which concerns no single batch: a sentence


class ExistenceCheck:
    """Looks whether files of one output are in their places, with as few lists as that takes.

    Many batches of a flat output share a folder, so its list is kept. That is safe for batches that were complete
    before it: their files leave a folder only for a merged file, whose plan is in the journal by then.
    """

    def __init__(self, target: BoundedFiles, merges: Callable[[int], Iterable[Merge]]) -> None:
        self._target, self._merges = target, merges
        self._listed: dict[str, dict[str, int]] = {}
        self._known: dict[int, list[Merge]] = {}

    def compare(self, batch: int, record: Record, *, complete: bool) -> tuple[Record, Record]:
        """Return which of these files are neither in their places nor in a merged file, and which others are there."""
        # A batch is `complete` if it was so before the first look. Batches of a flat output share their folders.
        again = not (complete and record.flat)
        there = record.standing(
            batch, {each: self._list(record.folder(each, batch), again=again) for each in record.partitions}
        )
        missing = record.without(there)
        for once_more in (False, True):
            if missing.files and record.flat:
                missing = missing.without(self._merged(batch, missing, again=once_more))
        return missing, Record({}) if record.flat else there.beside(record)

    def _merged(self, batch: int, missing: Record, *, again: bool) -> Record:
        thousand = batch // layout.BUCKET
        if again or thousand not in self._known:
            self._known[thousand] = list(self._merges(thousand))
        found: dict[str, dict[str, int]] = {}
        for merge in self._known[thousand]:
            for name, size in missing.partitions.get(merge.partition, {}).items():
                is_of_it = merge.files.get(layout.file(batch, name)) == size
                if is_of_it and merge.done(self._list(merge.partition, again=again)):
                    found[merge.partition] = {name: size}
        return Record(found, flat=True)

    def _list(self, folder: str, *, again: bool) -> dict[str, int]:
        known = self._listed.get(folder)
        if known is None or again:
            known = self._listed[folder] = _sizes(self._target, folder)
        return known


def unseen(target: BoundedFiles) -> str:
    """Return why Spark's readers see none of the batches in a directory, in a sentence; empty if they do."""
    log = _sizes(target, SPARKS_LOG)
    return f"Spark's readers follow {SPARKS_LOG}, and see none of its batches: move that away." if log else ""


def _sizes(target: BoundedFiles, folder: str) -> dict[str, int]:
    try:
        return sizes(target.call("verify", lambda files: files.list(folder), LIST_TIMEOUT_S))
    except NotFound:
        return {}


def sizes(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the bytes of each file."""
    return {entry.name: entry.size for entry in entries if not entry.is_directory}


def output_of(home: str, names: list[str], unfinished: list[int], thousands: list[int]) -> JournalOutput:
    """Return an output by the names in the folder of its journal, which is ``home`` in the leader directory."""
    try:
        target = read(TARGET, Target, names) or Target("")
    except Unreadable:
        target = Target("")
    folder = home.removeprefix(f"{OUT}/")
    return JournalOutput(
        folder.rpartition("-")[0] or folder, home, target.path, unfinished, thousands,
        sorted(each.removeprefix(layout.REGION) for each in names if each.startswith(layout.REGION)),
        layout.mark(names), behind(names), target.flat, Lines(names).names,
        max(layout.numbers(layout.REPLAYED, names), default=0), f"{target.kind} {target.place}".strip(), target.format,
    )  # fmt: skip


class JournalReader:
    """The outputs of one job; safe to use from several threads. Its methods raise StoreError if a store fails.

    ``find`` returns the leader directory, and is asked again when another leader has claimed the job.
    """

    def __init__(self, find: Callable[[], FencedDirectory]) -> None:
        self._find = find
        self._directory = find()

    def outputs(self) -> list[JournalOutput]:
        """Return the outputs of the job."""
        found = []
        for folder in self._names(OUT):
            home = f"{OUT}/{folder}"
            names = self._names(home)
            unfinished = layout.ids(self._names(f"{home}/{layout.READY}"))
            found.append(output_of(home, names, unfinished, layout.ids(self._names(f"{home}/{layout.DONE}"))))
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
        check = ExistenceCheck(target, lambda thousand: self.merges(output, thousand))
        yield from self._side_by_side(lambda batch: self._verify(output, batch, check), ids)

    def look(self, output: JournalOutput, batch: int, target: BoundedFiles, *, most: int | None = None) -> JournalBatch:
        """Look for the files of one complete batch, in at most so many of its partitions."""
        return self._verify(output, batch, ExistenceCheck(target, lambda each: self.merges(output, each)), most)

    def _side_by_side(self, what: Callable[[int], T], ids: list[int]) -> Iterator[T]:
        with ThreadPoolExecutor(THREADS, thread_name_prefix="ha-output") as threads:
            yield from threads.map(what, ids)

    def _read(self, output: JournalOutput, batch: int) -> tuple[JournalBatch, Record, Record]:
        """Return a batch as its record says, the record, and what of it was given up."""
        condition, names = BatchCondition.UNFINISHED, []
        if batch in output.unfinished:
            names = self._names(f"{output.folder}/{layout.ready(batch)}")
        if not names:
            condition, names = BatchCondition.COMPLETE, self._names(f"{output.folder}/{layout.done(batch)}")
        try:
            record, given_up = read(FILES, Record, names), read(LOST, Record, names)
        except Unreadable:
            record = given_up = None
        if record is None:
            return JournalBatch(output.name, batch, BatchCondition.UNKNOWN), Record({}), Record({})
        found = JournalBatch(
            output.name, batch, condition, len(record.partitions), record.files, record.bytes,
            accepted=given_up.files if given_up else 0, rows=record.row_count, after=record.after, plan=record.plan,
        )  # fmt: skip
        return found, record, given_up or Record({})

    def _verify(
        self, output: JournalOutput, batch: int, check: ExistenceCheck, most: int | None = None
    ) -> JournalBatch:
        found, record, given_up = self._read(output, batch)
        if found.condition == BatchCondition.UNKNOWN or output.place:
            return found
        here = self._here(output, batch, record) if found.condition == BatchCondition.UNFINISHED else Record({})
        wanted = record.part(batch, most)
        missing, surplus = check.compare(batch, wanted, complete=batch not in output.unfinished)
        missing = missing.without(given_up).without(here)
        condition = found.condition
        if missing.files:
            condition = BatchCondition.LOST if found.condition == BatchCondition.UNFINISHED else BatchCondition.GONE
        elif surplus.files and condition == BatchCondition.COMPLETE:
            condition = BatchCondition.MIXED
        return msgspec.structs.replace(
            found, condition=condition, missing=missing.places(batch), surplus=surplus.places(batch)
        )

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
