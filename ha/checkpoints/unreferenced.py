"""Unreferenced files: which files of a checkpoint no retained batch can ever refer to. Pure.

A file goes only if all of this holds:

- Its kind is known, and its name is never used again: a temporary file, a version with an id (format 2), or a table.
  Versions without an id stay. Spark writes them again under the same name, or deletes them itself.
- It is in no closure of a retained batch. A table also stays if a snapshot that stays names it.
- It was written before the present leader began, by the clock of the store. So its writer is fenced: no program
  remembers the id of a version that is in no commit, and a table that is on its way into a snapshot is younger.

Tried with a simulated Spark that dies, tries again, and shares tables (tests/unit/ha/checkpoints/test_unreferenced.py).
"""

import re
from collections.abc import Generator, Iterable, Mapping
from enum import StrEnum

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.closure import Closure, Contents, Wanted

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TEMPORARY = re.compile(rf"(?:.*/)?\.[^/]+\.{_UUID}(?:\.TID[0-9]+)?\.tmp")
_TABLE = re.compile(rf"(state/.+)/(?:SSTs|logs)/[^/]+-{_UUID}\.(?:sst|log)")

MARGIN_MS = 60_000  # a NameNode that takes over may have a clock that is behind by less than this


class FileKind(StrEnum):
    """A kind of file that can be swept."""

    TEMPORARY = "temporary"
    VERSION = "version"
    TABLE = "table"


def unreferenced(
    names: CheckpointFiles, closures: Iterable[Closure], written_ms: Mapping[str, int], before_ms: float
) -> Generator[Wanted, Contents, dict[str, FileKind]]:
    """Return the kind of each file that can go, by path; for :meth:`CheckpointReader.run`."""
    # `closures` are those of all retained batches. Times are of the store's clock: `before_ms` is when the present
    # leader began, at the latest; infinite if no query can run.
    sweep = _Sweep(names, {path for each in closures for path in each.files}, written_ms, before_ms)
    sweep.add_temporary()
    if names.batches:  # else the first one is on its way, or somebody has deleted commits
        sweep.add_versions()
        sweep.add_tables((yield frozenset(sweep.snapshots)))
    return sweep.found


class _Sweep:
    """The files that can go, as far as they were found."""

    def __init__(
        self, names: CheckpointFiles, needed: set[str], written_ms: Mapping[str, int], before_ms: float
    ) -> None:
        self._names, self._needed, self._written_ms, self._before_ms = names, needed, written_ms, before_ms
        self.found: dict[str, FileKind] = {}

    def add_temporary(self) -> None:
        for path in self._names.sizes:
            if _TEMPORARY.fullmatch(path):
                self._add(path, FileKind.TEMPORARY)

    def add_versions(self) -> None:
        kept = {path.rpartition(".")[0] for path in self._needed}  # where a version is needed whole, its changes stay
        for files in self._names.stores.values():
            for version, path in (*files.changes.items(), *files.whole.items()):
                if version.id and path.rpartition(".")[0] not in kept:
                    self._add(path, FileKind.VERSION)

    @property
    def snapshots(self) -> dict[str, str]:
        """The directory of the store of each snapshot that stays, by path."""
        stores = self._names.stores.items()
        whole = {path: store.path for store, files in stores for path in files.whole.values()}
        return {path: place for path, place in whole.items() if path.endswith(".zip") and path not in self.found}

    def add_tables(self, said: Contents) -> None:
        named, unknown = set[str](), set[str]()
        for path, place in self.snapshots.items():
            whole = contents.parsed(contents.whole, said.get(path))
            if whole is None:  # its tables may be any
                unknown.add(place)
            else:
                named |= {f"{place}/{table}" for table in whole.files}
        for path in self._names.sizes:
            if (table := _TABLE.fullmatch(path)) and path not in named and table[1] not in unknown:
                self._add(path, FileKind.TABLE)

    def _add(self, path: str, kind: FileKind) -> None:
        """Add a file with those that hold its check sums: Spark's, and Hadoop's on ``file://``."""
        folder, _, name = path.rpartition("/")
        for each in (path, f"{path}.crc", f"{folder}/.{name}.crc", f"{folder}/.{name}.crc.crc"):
            known = each in self._names and each not in self._needed
            if known and self._written_ms[each] + MARGIN_MS < self._before_ms:
                self.found[each] = kind
