"""Published: what the outputs of a query have published after a batch, and what a rewind makes of it."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from ha.outputs import layout
from ha.outputs.reading import Condition, JournalOutput, JournalReader
from ha.rewind.plan import Plan, RewoundOutput
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import OUT
from store.errors import Conflict, Invalid

ASIDE, KEEP = "aside", "keep"
"""Later batches go into the trash, and their numbers are used again; or they stay, and numbers go on after them."""

EVERY = 1 << 62


class Concerned(msgspec.Struct, frozen=True):
    """The batches that an output has published after the one to go back to.

    Attributes:
        output: its name.
        target: path of the directory in which its batches appear.
        first: the lowest number among them.
        last: the highest one.
        files: how many they consist of.
        bytes: of all files.
    """

    output: str
    target: str
    first: int
    last: int
    files: int
    bytes: int


class Later(NamedTuple):
    """The batches of an output after the newest one that stays, by their numbers, and the shifts in its journal."""

    output: JournalOutput
    shifts: list[str]
    stays: int
    ids: list[int]


class Published:
    """The outputs of one job. Its methods raise StoreError if the store fails."""

    def __init__(self, find: Callable[[], FencedDirectory]) -> None:
        """Find the leader directory: ``find`` returns it."""
        self._directory = find()
        self._reader = JournalReader(find)

    def after(self, batch: int, names: Sequence[str] | None) -> list[Later]:
        """Return the outputs of the query that have published batches after this one; see :meth:`of_query`."""
        return [each for each in self.of_query(batch, names) if each.ids]

    def of_query(self, batch: int, names: Sequence[str] | None) -> list[Later]:
        """Return the outputs of the query, with what they have published after a batch.

        Args:
            batch: number that Spark gave to it.
            names: of the outputs that are the query's; None for all of the job.

        Raises:
            Invalid: the job has no such output.
        """
        outputs = self._reader.outputs()
        if unknown := sorted(set(names or ()) - {each.name for each in outputs}):
            known = ", ".join(sorted({each.name for each in outputs})) or "none"
            raise Invalid(f"Job {self._directory.job!r} has no output {unknown[0]!r}: it has {known}.")
        wanted = [each for each in outputs if names is None or each.name in names]
        shifts = [self._shifts(each.folder) for each in wanted]
        stays = [batch + layout.shift(batch, each) for each in shifts]
        return list(map(self._later, wanted, shifts, stays))

    def since(self, done: Plan) -> list[Later]:
        """Return what the outputs of a rewind have published since, in its order.

        Raises:
            Conflict: one of them has been discarded since.
        """
        outputs = {each.folder: each for each in self._reader.outputs()}
        if gone := [each.name for each in done.outputs if f"{OUT}/{each.folder}" not in outputs]:
            raise Conflict(f"Output {gone[0]!r} has been discarded since the rewind, which cannot be undone any more.")
        folders = [f"{OUT}/{each.folder}" for each in done.outputs]
        return [
            self._later(outputs[folder], self._shifts(folder), old.stays)
            for folder, old in zip(folders, done.outputs, strict=True)
        ]

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
        """Return what becomes of an output if its query is put back to a batch.

        Raises:
            Invalid: its batches cannot be moved away, because it is not known what they consist of.
        """
        output, before, stays, ids = found
        by = layout.shift(to, before)
        if ids and choice == KEEP:
            stays, by = ids[-1], ids[-1] - to
        elif ids and (why := self._unknown(found)):
            raise Invalid(
                f"What output {output.name!r} has published after batch {stays} cannot be moved away, because {why}: "
                "keep it, with --outputs keep."
            )
        after = layout.shifts_after(to, before, by)
        return RewoundOutput(output.name, output.folder.removeprefix(f"{OUT}/"), output.target, stays, after, before)

    def renumbered(self, found: Later, batch: int) -> RewoundOutput:
        """Return what becomes of an output if Spark's next batch after this one has no input, and no id.

        If the batch after it was begun and published, Spark does that again under the number after the next one.

        Raises:
            Invalid: it has published more than one batch that Spark has not committed.
        """
        output, before, stays, ids = found
        if len(ids) > 1:
            raise Invalid(
                f"Output {output.name!r} has published batches {ids[0]} to {ids[-1]}, which the query has not "
                "committed: is it an output of another query? Say which ones are this query's, with --output NAME."
            )
        by = layout.shift(batch + 1, before) - len(ids)
        after = layout.shifts_after(batch + 1, before, by)
        folder = output.folder.removeprefix(f"{OUT}/")
        return RewoundOutput(output.name, folder, output.target, max(ids, default=stays), after, before)

    def _unknown(self, found: Later) -> str:
        output, _, stays, ids = found
        oldest = min(output.thousands, default=0) * layout.BUCKET
        if stays + 1 < oldest:
            return f"its records begin at batch {oldest}"
        if output.flat:
            thousands = range((stays + 1) // layout.BUCKET, ids[-1] // layout.BUCKET + 1)
            newest = [merge.newest for each in thousands for merge in self._reader.merges(output, each)]
            if newest and max(newest) > stays:
                return f"batches up to {max(newest)} are merged"
        bad = [each.batch for each in self._reader.listed(output, ids) if each.condition == Condition.UNKNOWN]
        return f"the record of batch {bad[0]} is missing or damaged" if bad else ""

    def _later(self, output: JournalOutput, shifts: list[str], stays: int) -> Later:
        if not output.target:
            raise Invalid(
                f"Output {output.name!r} was last written by a version of this package that kept no records: start the "
                "job once more with this one."
            )
        done = {each for ids in self._reader.ids(output, range(stays + 1, EVERY)) for each in ids}
        ids = sorted(done | {each for each in output.unfinished if each > stays})
        return Later(output, shifts, stays, ids)

    def _shifts(self, folder: str) -> list[str]:
        return sorted(each.name for each in self._directory.list(folder) if each.name.startswith(layout.SHIFT))
