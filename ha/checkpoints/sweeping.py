"""Sweeping: finds files that no retained batch of a checkpoint can ever refer to, and moves them into a trash.

A file goes only if all of this holds:

- Its kind is known, and its name is never used again: a temporary file, a version with an id (format 2), or a table.
  Versions without an id stay. Spark writes them again under the same name, or deletes them itself.
- It is in no closure of a retained batch. A table also stays if a snapshot that stays names it.
- It was written before the present leader began, by the clock of the store. So its writer is fenced: no program
  remembers the id of a version that is in no commit, and a table that is on its way into a snapshot is younger.

Tried with a simulated Spark that dies, tries again, and shares tables (tests/unit/ha/checkpoints/test_unreferenced.py).
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure, Contents, Wanted
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import Condition, verify
from leader.job.fenced_directory import FencedDirectory
from leader.job.grants import began_after_ms
from leader.job.swept_files import IMPORTING, REVIVED, SweptFiles
from leader.layout.names import CHECKPOINTS, HISTORY, RECORD, SPARK, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import Conflict, Invalid, NotFound
from store.files import Entry

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TEMPORARY = re.compile(rf"(?:.*/)?\.[^/]+\.{_UUID}(?:\.TID[0-9]+)?\.tmp")
_TABLE = re.compile(rf"(state/.+)/(?:SSTs|logs)/[^/]+-{_UUID}\.(?:sst|log)")

MARGIN_MS = 60_000  # a NameNode that takes over may have a clock that is behind by less than this
ROUNDS = 3  # lists of a checkpoint whose query commits while it is listed
CALL_TIMEOUT_S = 20.0  # time for one call; only the sweep itself waits for it
COPIES = "importing"


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


@dataclass(frozen=True, slots=True)
class Sweepable:
    """The files of one checkpoint that can be swept."""

    query: str  # its name
    kinds: dict[str, FileKind] = field(default_factory=dict)  # kind of each file that can go, by path
    sizes: dict[str, int] = field(default_factory=dict)  # size of each of them
    waiting: int = 0  # files that no batch needs either, but which may be younger than the present leader
    waiting_bytes: int = 0  # their total size
    refused: str = ""  # why nothing of it can be swept; empty if that is not so

    @property
    def bytes(self) -> int:
        """Total size of the files that can go."""
        return sum(self.sizes.values())

    def count(self, kind: FileKind) -> int:
        """Number of files of a kind."""
        return sum(1 for each in self.kinds.values() if each is kind)


def find(files: BoundedFiles, path: str, query: str, before_ms: Callable[[Sequence[int]], float]) -> Sweepable:
    """Find what can be swept of one checkpoint. Its query may be running."""
    # `before_ms` is given the times at which its files were written, and returns when its present writer began, at the
    # latest: by the same clock, infinite if there is none.

    def reader() -> CheckpointReader:
        return CheckpointReader(Tree(files, path))

    found, _ = verify(reader)
    damaged = [each for each in found if each.missing and each.condition is not Condition.FORGOTTEN]
    if damaged:
        said = (
            f"Batch {damaged[-1].batch} is {damaged[-1].condition}: see `ha checkpoint verify {files.at(path)}` first."
        )
        return Sweepable(query, refused=said)
    for _ in range(ROUNDS):
        opened = reader()
        entries = opened.tree.entries()
        names = CheckpointFiles({each: entry.size for each, entry in entries.items()})
        closures = opened.closures(names, names.batches)
        if not closures or closures[-1].restorable:
            break
    else:
        raise Conflict(f"Query {query!r} commits faster than its checkpoint can be listed: sweep it another time.")
    written = {each: entry.modified_ms for each, entry in entries.items()}
    began = before_ms(list(written.values()))
    kinds = opened.run(unreferenced(names, closures, written, began))
    rest = opened.run(unreferenced(names, closures, written, float("inf"))).keys() - kinds.keys()
    sizes = {each: names.sizes[each] for each in kinds}
    return Sweepable(query, kinds, sizes, len(rest), sum(names.sizes[each] for each in rest))


class JobSweep:
    """The sweep of one job: by its leader, ``alone``, so that no query can run, or beside a leader."""

    def __init__(self, files: BoundedFiles, directory: FencedDirectory, *, alone: bool) -> None:
        self._files, self._directory, self._alone = files, directory, alone
        self.trash = SweptFiles(_JobPlace(files, directory))

    def before_ms(self) -> float:
        """Return when the present leader began, at the latest; infinite if the caller leads."""
        if self._alone:
            return float("inf")
        return began_after_ms(self._directory.list(HISTORY), self._directory.leader.epoch)

    def queries(self) -> list[str]:
        """Return the queries that have a checkpoint."""
        return sorted(entry.name for entry in self._directory.list(SPARK) if entry.is_directory)

    def find(self, query: str, before_ms: float) -> Sweepable:
        """Find what can be swept of one query; see :func:`find`."""
        return find(self._files, self._directory.at(f"{SPARK}/{query}"), query, lambda _: before_ms)

    def copies(self, before_ms: float) -> list[str]:
        """Return the queries with an unfinished copy from elsewhere, in which nothing was written since."""
        return sorted(
            entry.name for entry in self._directory.list(COPIES) if self._newest(entry, COPIES, depth=3) < before_ms
        )

    def revived(self) -> list[str]:
        """Return old leader directories that a fenced Spark has brought back to life; they have no readers."""
        job, epoch = self._directory.job, self._directory.leader.epoch
        found = []
        for entry in self._list(job):
            old = LeaderDirectory.parse(entry.name)
            if old is None or old.epoch >= epoch:
                continue
            inside = {each.name for each in self._list(f"{job}/{old.name}")}
            if not inside & {RECORD, CHECKPOINTS}:
                found.append(entry.name)
        return sorted(found)

    def move_copy(self, name: str, query: str) -> None:
        """Move an unfinished copy into the trash."""
        self.trash.move_whole(name, f"{COPIES}/{query}", f"{IMPORTING}{query}")

    def move_revived(self, name: str, old: str) -> None:
        """Move a revived directory into the trash."""
        self.trash.move_whole(name, f"../{old}", f"{REVIVED}{old}")

    def _newest(self, entry: Entry, folder: str, depth: int) -> int:
        path = f"{folder}/{entry.name}"
        below = self._directory.list(path) if entry.is_directory and depth else []
        return max([entry.modified_ms, *(self._newest(each, path, depth - 1) for each in below)])

    def _list(self, path: str) -> Sequence[Entry]:
        return self._files.call("own_list", lambda files: files.list(path), CALL_TIMEOUT_S)


class _JobPlace:
    """A leader directory, from which ``..`` leads to the directory of the job."""

    def __init__(self, files: BoundedFiles, directory: FencedDirectory) -> None:
        self._files, self._directory = files, directory
        self.list, self.make_folder, self.delete = directory.list, directory.make_folder, directory.delete

    def rename(self, source: str, target: str) -> None:
        if "../" not in source and "../" not in target:
            self._directory.rename(source, target)
            return
        ends = [
            f"{self._directory.job}/{each[3:]}" if each.startswith("../") else self._directory.at(each)
            for each in (source, target)
        ]
        self._files.call("own_rename", lambda files: files.rename(*ends), CALL_TIMEOUT_S)


class OutsidePlace:
    """A directory outside of jobs, as :class:`leader.job.swept_files.Place`; the caller closes the store."""

    def __init__(self, files: BoundedFiles) -> None:
        self._files = files

    def list(self, folder: str = "") -> Sequence[Entry]:
        """Return its entries; none if there is no such folder."""
        try:
            return self._files.call("bulk_list", lambda files: files.list(folder), CALL_TIMEOUT_S)
        except NotFound:
            return []

    def make_folder(self, path: str) -> None:
        """Make a folder."""
        self._files.call("bulk_make", lambda files: files.make_directory(path), CALL_TIMEOUT_S)

    def rename(self, source: str, target: str) -> None:
        """Rename an entry."""
        self._files.call("bulk_rename", lambda files: files.rename(source, target), CALL_TIMEOUT_S)

    def delete(self, path: str) -> None:
        """Delete an entry, if it is there."""
        with suppress(NotFound):
            self._files.call("bulk_delete", lambda files: files.delete(path, recursive=True), CALL_TIMEOUT_S)


def check_trash(name: str) -> str:
    """Return the name of the directory beside a checkpoint into which its swept files go; a root has none."""
    if not name:
        raise Invalid("This is the root of a store, beside which there is no room for a trash.")
    return f"_swept-{name}"
