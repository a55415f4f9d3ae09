"""Published: the batches that a query's outputs have published after a given one, and their fate in a rewind."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from ha.checkpoints import contents
from ha.outputs import layout
from ha.outputs.lines import Lines
from ha.outputs.reading import BatchCondition, JournalOutput, JournalReader
from ha.spark.rewind.completing import RewindPlan, RewoundOutput
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import OUT, SPARK
from store.errors import Conflict, Invalid, NotFound

ASIDE, KEEP = "aside", "keep"
"""Later batches go into the trash, and their numbers are used again; or they stay, and numbers go on after them."""

EVERY = 1 << 62


class Concerned(msgspec.Struct, frozen=True):
    """The batches that an output has published after the one to go back to."""

    output: str  # its name
    target: str  # path of the directory in which its batches appear
    first: int  # the lowest number among them
    last: int  # the highest one
    files: int  # how many they consist of
    bytes: int  # of all files


class Later(NamedTuple):
    """The batches of an output after the newest one that stays, by their ids, and the lines in its journal."""

    output: JournalOutput
    lines: Lines
    stays: int
    ids: list[int]


class PublishedBatches:
    """The outputs of one query. Its methods raise StoreError if the store fails.

    They raise ``Invalid`` if the query has no id, or what was published is not known and cannot be moved away, and
    ``Conflict`` if an output was discarded.
    """

    def __init__(self, find: Callable[[], FencedDirectory], query: str) -> None:
        self._directory, self._query = find(), query
        self._reader = JournalReader(find)

    def after(self, batch: int) -> list[Later]:
        """Return the outputs of the query, with what they have published after a batch of Spark's."""
        outputs = [(each, Lines(each.lines)) for each in self._reader.outputs()]
        if not outputs:
            return []
        mine = self._id()
        return [
            self._later(each, lines, lines.id_of(batch))
            for each, lines in outputs
            if lines.current is not None and lines.current.id == mine
        ]

    def since(self, done: RewindPlan) -> list[Later]:
        """Return what the outputs of a rewind have published since, in its order."""
        outputs = {each.folder: each for each in self._reader.outputs()}
        if gone := [each.name for each in done.outputs if f"{OUT}/{each.folder}" not in outputs]:
            raise Conflict(f"Output {gone[0]!r} has been discarded since the rewind, which cannot be undone any more.")
        folders = [f"{OUT}/{each.folder}" for each in done.outputs]
        found = [
            self._later(outputs[folder], Lines(outputs[folder].lines), old.stays)
            for folder, old in zip(folders, done.outputs, strict=True)
        ]
        if kept := [each.output for each in found if each.ids and each.output.place]:
            raise Conflict(
                f"Output {kept[0].name!r} has published batches in {kept[0].place} since the rewind, which cannot be "
                "moved away: it cannot be undone any more."
            )
        return found

    def concerned(self, found: Iterable[Later]) -> list[Concerned]:
        """Return what people are told of them."""
        told = []
        for each in found:
            if each.ids:
                rows = list(self._reader.listed(each.output, each.ids))
                files, size = sum(row.files for row in rows), sum(row.bytes for row in rows)
                told.append(Concerned(each.output.name, each.output.target, each.ids[0], each.ids[-1], files, size))
        return told

    def rewound(self, found: Later, to: int, choice: str) -> RewoundOutput:
        """Return what becomes of an output if its query is put back to a batch."""
        output, lines, stays, ids = found
        by = lines.shift(to)
        if ids and choice == KEEP:
            stays, by = ids[-1], ids[-1] - to
        elif ids and (why := self._unknown(found)):
            raise Invalid(
                f"What output {output.name!r} has published after batch {stays} cannot be moved away, because {why}: "
                "keep it, with --outputs keep."
            )
        folder = output.folder.removeprefix(f"{OUT}/")
        return RewoundOutput(output.name, folder, output.target, stays, lines.rewound(to, by), lines.names)

    def renumbered(self, found: Later, batch: int) -> RewoundOutput:
        """Return what becomes of an output if Spark's next batch after this one has no input, and no id."""
        # If the batch after it was begun and published, Spark does that again under the number after the next one.
        output, lines, stays, ids = found
        if len(ids) > 1:
            raise Invalid(
                f"Output {output.name!r} has published batches {ids[0]} to {ids[-1]}, which the query has not "
                "committed: its checkpoint was put back, or another job has it: "
                f"see `ha output verify {self._directory.job}`."
            )
        after = lines.rewound(batch + 1, lines.shift(batch + 1) - len(ids))
        folder = output.folder.removeprefix(f"{OUT}/")
        return RewoundOutput(output.name, folder, output.target, max(ids, default=stays), after, lines.names)

    def _unknown(self, found: Later) -> str:
        output, _, stays, ids = found
        if output.place:
            return f"they are in {output.place}, which is no directory of files"
        oldest = min(output.thousands, default=0) * layout.BUCKET
        if stays + 1 < oldest:
            return f"its records begin at batch {oldest}"
        if output.flat:
            thousands = range((stays + 1) // layout.BUCKET, ids[-1] // layout.BUCKET + 1)
            newest = [merge.newest for each in thousands for merge in self._reader.merges(output, each)]
            if newest and max(newest) > stays:
                return f"batches up to {max(newest)} are merged"
        bad = [each.batch for each in self._reader.listed(output, ids) if each.condition == BatchCondition.UNKNOWN]
        return f"the record of batch {bad[0]} is missing or damaged" if bad else ""

    def _later(self, output: JournalOutput, lines: Lines, stays: int) -> Later:
        if not output.target:
            raise Invalid(
                f"Output {output.name!r} was last written by a version of this package that kept no records: start the "
                "job once more with this one."
            )
        done = {each for ids in self._reader.ids(output, range(stays + 1, EVERY)) for each in ids}
        ids = sorted(done | {each for each in output.unfinished if each > stays})
        return Later(output, lines, stays, ids)

    def _id(self) -> str:
        try:
            found = contents.query_id(self._directory.read(f"{SPARK}/{self._query}/metadata"))
        except (NotFound, contents.Unreadable) as error:
            raise Invalid(
                f"The checkpoint of query {self._query!r} does not say which query it is of ({error}): "
                f"see `ha checkpoint verify {self._directory.job}`."
            ) from error
        return found
