"""Looking: whether the files of batches are in their places, with as few lists as that takes.

Many batches of a flat output share a folder, so its list is kept. That is safe for batches that were complete before
it: their files leave a folder only for a merged file, whose plan is in the journal by then.
"""

from collections.abc import Callable, Iterable

from ha.outputs import layout
from ha.outputs.merge_plan import Merge
from ha.outputs.record import Record
from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Entry

LIST_TIMEOUT_S = 20.0
"""Time for the list of one folder."""


class Looking:
    """Looks at the target of one output; safe to use from several threads. Its methods raise StoreError."""

    def __init__(self, target: BoundedFiles, merges: Callable[[int], Iterable[Merge]]) -> None:
        """Look at nothing yet.

        Args:
            target: the directory in which batches appear.
            merges: reads those of a thousand batches.
        """
        self._target, self._merges = target, merges
        self._listed: dict[str, dict[str, int]] = {}
        self._known: dict[int, list[Merge]] = {}

    def missing(self, batch: int, record: Record, *, complete: bool) -> Record:
        """Return which of these files are neither in their places nor in a merged file.

        Args:
            batch: its id.
            record: the files.
            complete: whether the batch was complete before the first look.
        """
        missing = record.without(self._there(batch, record, again=not (complete and record.flat)))
        for again in (False, True):
            if missing.files and record.flat:
                missing = missing.without(self._merged(batch, missing, again=again))
        return missing

    def _there(self, batch: int, record: Record, *, again: bool) -> Record:
        folders = {each: layout.folder(each, batch, flat=record.flat) for each in record.partitions}
        return record.standing(batch, {each: self._list(folder, again=again) for each, folder in folders.items()})

    def _merged(self, batch: int, missing: Record, *, again: bool) -> Record:
        thousand = batch // layout.BUCKET
        if again or thousand not in self._known:
            self._known[thousand] = list(self._merges(thousand))
        found: dict[str, dict[str, int]] = {}
        for merge in self._known[thousand]:
            for name, size in missing.partitions.get(merge.partition, {}).items():
                is_of_it = merge.files.get(layout.file(batch, name, flat=True)) == size
                if is_of_it and merge.done(self._list(merge.partition, again=again)):
                    found[merge.partition] = {name: size}
        return Record(found, flat=True)

    def _list(self, folder: str, *, again: bool) -> dict[str, int]:
        known = self._listed.get(folder)
        if known is None or again:
            known = self._listed[folder] = self._sizes(folder)
        return known

    def _sizes(self, folder: str) -> dict[str, int]:
        try:
            return sizes(self._target.call("verify", lambda files: files.list(folder), LIST_TIMEOUT_S))
        except NotFound:
            return {}


def sizes(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the bytes of each file."""
    return {entry.name: entry.size for entry in entries if not entry.is_directory}
