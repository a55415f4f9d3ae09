"""Merging: makes one file of many in a flat output, while its job runs and its readers read.

A plan is put into the journal first, then an empty file appears, and one step of the NameNode fills it and takes the
others away. The step happens once or not at all, whoever asks for it how often. So it needs no lease: two that merge
the same files get in each other's way, and one of them is refused. If it is interrupted, the next one goes on with the
plan. Whoever misses a file of a batch finds it in the plans. See :mod:`ha.outputs.merge_plan` and decision 59.
"""

import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from ha.leadership.fenced_rename import ATTEMPTS, FencedRename, patiently
from ha.outputs import layout
from ha.outputs.merge_plan import PLAN, Merge, Rule, merge_in, plan
from leader.layout.names import REWINDING
from leader.layout.packed_names import written
from store.errors import Conflict, NotFound, Unknown
from store.files import Entry

NEW = "-new"
"""Ends the name of a plan that is not whole yet."""

CLOCK = "clock"
"""Folder that is made to see what time the store has."""

EMPTY, FOOTER = "empty", "footer"
"""Files that are moved out of a plan."""

_NOT_ALONE = "Somebody else merges this output: wait until that has ended."

Concat = Callable[[str, Sequence[str]], None]
"""Puts files behind one of the same folder: its path and theirs, below the root of the renames."""


class Merging:
    """The merges of one output. Its methods raise what those of the renames do."""

    def __init__(self, renames: FencedRename, home: str, concat: Concat) -> None:
        """Connect to nothing yet.

        Args:
            renames: lead from the present leader directory to the target; their owner need not lead.
            home: the output's folder, below the root of the renames.
            concat: raises ``StoreError``.
        """
        self._renames, self._home, self._concat = renames, home, concat

    def now_ms(self) -> int:
        """Return the time of the store."""
        clock = self._at(layout.MERGING, CLOCK)
        self._renames.remove(clock)
        self._renames.make_folders(self._at(layout.MERGING), clock)
        found = next((each for each in self._renames.list(self._at(layout.MERGING)) if each.name == CLOCK), None)
        if found is None:
            raise Conflict(_NOT_ALONE)
        return found.modified_ms

    def sweep(self) -> None:
        """Delete what is no whole plan: it was not begun, or is what is left of one that was done."""
        for entry in self._renames.list(self._at(layout.MERGING)):
            folder = self._at(layout.MERGING, entry.name)
            if entry.name.endswith(NEW) or merge_in([each.name for each in self._renames.list(folder)]) is None:
                self._renames.remove(folder)

    def pending(self) -> list[Merge]:
        """Return the plans that are not done yet."""
        return list(_plans(self._renames, self._at(layout.MERGING)))

    def partitions(self, wanted: str = "") -> Iterator[tuple[str, list[Entry]]]:
        """Return the folders that contain files, each with its entries.

        Args:
            wanted: only this partition, and those below it.
        """
        folders = [wanted.strip("/")]
        while folders:
            folder = folders.pop()
            entries = [each for each in self._renames.list(self._out(folder)) if not layout.hidden(each.name)]
            folders += [f"{folder}/{each.name}".lstrip("/") for each in reversed(entries) if each.is_directory]
            if any(not each.is_directory for each in entries):
                yield folder, entries

    def planned(self, newest: int, now_ms: int, rule: Rule, token: str, wanted: str = "") -> Iterator[Merge]:
        """Return the merges that are to be made; see :func:`ha.outputs.merge_plan.plan`."""
        waiting: dict[str, set[str]] = {}
        for each in self.pending():
            waiting.setdefault(each.partition, set()).update(each.files)
        for number, (partition, entries) in enumerate(self.partitions(wanted)):
            free = [each for each in entries if each.name not in waiting.get(partition, ())]
            unique = f"{token}{number:x}"  # partitions have files of the same batches, and their plans share a folder
            yield from plan(partition, free, newest, now_ms, rule, unique, f"/{self._renames.outside}")

    def begin(self, merge: Merge, footer: bytes = b"") -> None:
        """Put a plan into the journal, with the footer that it has; :meth:`finish` does the rest."""
        renames, whole = self._renames, self._at(layout.MERGING, merge.target)
        new = f"{whole}{NEW}"
        names = written(PLAN, merge)
        renames.make_folders(self._at(layout.MERGING), new, *(f"{new}/{name}" for name in names))
        if merge.footer:
            renames.do(lambda files: files.write(f"{new}/{FOOTER}", footer))
        try:
            renames.move(new, whole)
        except NotFound as error:
            raise Conflict(_NOT_ALONE) from error

    def finish(self, merge: Merge) -> bool:
        """Do what is left of a plan; return False, and drop it, if it cannot be done because files of it are gone.

        Raises:
            Conflict: a query of the job is being put back.
            Refused: HDFS does not merge these files; the message says why. They stay as they are.
            Unknown: whether it is done is not known; call it again.
        """
        target = self._out(merge.partition, merge.target)
        sources = [self._out(merge.partition, name) for name in merge.files]
        heard = False
        for _ in range(ATTEMPTS):
            listed = self._listed(merge)
            if merge.footer not in ("", *listed) and not merge.done(listed):
                self._show(merge)
                listed = self._listed(merge)
            if merge.done(listed):
                if not heard:  # it is only seen: if it is forgotten when its plan is put away, nobody does it again
                    self._renames.acknowledge()
                    if not merge.done(self._listed(merge)):
                        continue
                self._keep(merge)
                return True
            if not merge.possible(listed):
                self._renames.acknowledge()  # what is seen may be forgotten
                if not merge.possible(listed := self._listed(merge)) and not merge.done(listed):
                    self._drop(merge)
                    return False
                continue
            if self._renames.list(f"{self._renames.inside}/{REWINDING}"):
                raise Conflict("A query of the job is being put back: start the job, and merge when that is done.")
            if merge.target not in listed:
                self._make(merge, target)
            with suppress(NotFound, Unknown):  # the next look tells
                patiently(lambda: self._concat(target, sources))
                heard = True
        raise Unknown(f"It is not known whether {target!r} is merged: merge again.")

    def _make(self, merge: Merge, target: str) -> None:
        """Make the one file, without content, unless it is there."""
        made = self._at(layout.MERGING, merge.target, EMPTY)
        self._renames.do(lambda files: files.write(made, b""))
        with suppress(NotFound):  # a move that was executed twice
            self._renames.move(made, target)

    def _show(self, merge: Merge) -> None:
        """Put the footer beside the files, unless that was done before."""
        with suppress(NotFound):
            self._renames.move(self._at(layout.MERGING, merge.target, FOOTER), self._out(merge.partition, merge.footer))

    def _keep(self, merge: Merge) -> None:
        """Put a plan that is done with the records of its batches."""
        folder = self._at(layout.MERGED, f"{merge.thousand}")
        self._renames.make_folders(self._at(layout.MERGED), folder)
        with suppress(NotFound):  # somebody else has done that
            self._renames.move(self._at(layout.MERGING, merge.target), f"{folder}/{merge.target}")

    def _drop(self, merge: Merge) -> None:
        """Delete the footer and the one file, which nothing can fill any more, and then the plan."""
        if merge.footer:
            self._renames.remove(self._at(layout.MERGING, merge.target, FOOTER))  # first: then none comes after it
            self._renames.remove(self._out(merge.partition, merge.footer))
        self._renames.remove(self._out(merge.partition, merge.target))
        self._renames.remove(self._at(layout.MERGING, merge.target))

    def _listed(self, merge: Merge) -> dict[str, int]:
        return {each.name: each.size for each in self._renames.list(self._out(merge.partition))}

    def _at(self, *parts: str) -> str:
        return posixpath.join(self._home, *parts)

    def _out(self, *parts: str) -> str:
        return posixpath.join(self._renames.outside, *parts).rstrip("/")


def merges(renames: FencedRename, home: str) -> list[Merge]:
    """Return all merges of an output whose plans are kept, those that are not done included."""
    found = list(_plans(renames, f"{home}/{layout.MERGING}"))
    for thousand in renames.list(f"{home}/{layout.MERGED}"):
        found += _plans(renames, f"{home}/{layout.MERGED}/{thousand.name}")
    return found


def _plans(renames: FencedRename, folder: str) -> Iterator[Merge]:
    for entry in renames.list(folder):
        if entry.name != CLOCK and not entry.name.endswith(NEW):
            merge = merge_in([each.name for each in renames.list(f"{folder}/{entry.name}")])
            if merge is not None:
                yield merge
