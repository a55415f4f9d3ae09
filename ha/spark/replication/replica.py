"""Replica: the copy of one query's checkpoint below a leader directory elsewhere; complete at every instant.

    <leader directory>/spark/<query>/            the replica: the closures of the newest batches that were moved
    <leader directory>/copying/<query>/parts/    files while they are written
    <leader directory>/copying/<query>/tree/     the replica of another line of batches, until its first one is complete
    <leader directory>/trash/<trash>/query=...   what that one has replaced

The directory is that of the job ``<job>.replica``, and only its leader writes here. So a claim fences it.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import MOST_BYTES, CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.replica_round import ReplicaLine, ambiguous, anchor, is_unique, phases, same_line, surplus
from ha.checkpoints.trees import Tree
from ha.spark.checkpoint_tools.copying import CopyProgress, Staging, Told
from ha.spark.stored.locations import METADATA, relocated
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import Conflict, Invalid, NotFound

COPYING = "copying"

AT_ONCE = 64 << 20
"""Bytes up to which a round is copied as a whole before it is shown, phase by phase.

To close a file takes HDFS up to half a second: this way the files of all phases take that once. A longer round shows
each file at once, so that one that is interrupted goes on from there.
"""


@dataclass(frozen=True, slots=True)
class ReplicaMoved:
    """The result of one round: files and bytes to the replica, files that went, and whether another line began."""

    files: int
    bytes: int
    swept: int
    anew: bool


class Replica:
    """One replica, for the leader of its directory."""

    def __init__(
        self, files: BoundedFiles, directory: FencedDirectory, query: str, retained: int, told: Told | None = None
    ) -> None:
        self._files, self._directory, self._query = files, directory, query
        self._retained, self._told = retained, told
        self._loaded = False

    @property
    def batch(self) -> int | None:
        """The newest batch from which the query can resume here; None if there is none."""
        if not self._loaded:
            self._open()
        return max(self._held, default=None) if self._shown else None

    def move(self, source: CheckpointReader, closure: Closure, before: Callable[[int], object]) -> ReplicaMoved:
        """Move what the closure of a batch adds, and let go what is no longer needed."""
        # The closure was computed by the source, and is restorable there. `before` is called before each file with its
        # size; it may wait, and an error from it ends the round. Raises `Conflict` or `NotFound` if the source has
        # changed meanwhile, or if another process leads the replica: look again.
        if not self._loaded:
            self._open()
        self._loaded = False  # until this round is complete
        while self._line(source, closure) is ReplicaLine.OTHER:
            self._begin_anew()
        files, size = self._add(source, closure, before)
        self._held[closure.batch] = closure.files.keys() | closure.rebuilt.keys()
        swept, anew = self._sweep(), False
        if self._shown:
            self._loaded = True
        else:
            anew = settle(self._directory, self._query)
        return ReplicaMoved(files, size, swept, anew)

    # --- what is there

    def _open(self) -> None:
        found = promotable(self._files, self._directory, self._query)
        if found is not None and found[0] != _path(self._query, shown=True):
            settle(self._directory, self._query)
        self._load(shown=QueryCheckpoints(self._directory).has(self._query))
        self._loaded = True

    def _load(self, *, shown: bool) -> None:
        """Learn what is in the replica, or in the one that is not complete."""
        self._shown = shown
        self._tree = Tree(self._files, self._directory.at(_path(self._query, shown=shown)))
        place = self._directory.at(f"{COPYING}/{self._query}")
        self._directory.make_folder(COPYING)
        self._directory.delete(f"{COPYING}/{self._query}/parts")  # of a round that was interrupted
        self._staging = Staging(self._files, place, self._told, self._tree.path)
        try:
            self._present = self._tree.listing()
        except NotFound:
            self._directory.check()
            self._present = {}
        names, reader = CheckpointFiles(self._present), CheckpointReader(self._tree)
        found = reader.closures(names, names.batches)
        self._held = {each.batch: each.files.keys() | each.rebuilt.keys() for each in found if each.restorable}
        self._digests = {
            path: _digest(data)
            for path, data in reader.known.items()
            if data is not None and len(data) == self._present.get(path)
        }

    # --- the line of batches

    def _line(self, source: CheckpointReader, closure: Closure) -> ReplicaLine:
        """Compare with the source; see :mod:`ha.checkpoints.replica_round`."""
        changed = (path for path, size in closure.files.items() if self._present.get(path, size) != size)
        if any(_content(source, path, closure) is None for path in changed):
            return ReplicaLine.OTHER
        newest = anchor(self._present)
        here = there = None
        if newest is not None:
            offsets = f"offsets/{newest}"
            here = source.contents(frozenset({offsets}))[offsets]
            there = self._tree.head(offsets, MOST_BYTES)
        line = same_line(closure.batch, newest, here, there)
        if line is not ReplicaLine.UNKNOWN:
            return line
        paths = frozenset(ambiguous(closure, self._present))
        said, known = source.contents(paths), CheckpointReader(self._tree).contents(paths)
        return ReplicaLine.SAME if all(_same(path, said[path], known[path]) for path in paths) else ReplicaLine.OTHER

    def _begin_anew(self) -> None:
        """Go over to the replica of another line; one that was begun for a third line is deleted."""
        if not self._shown:
            self._directory.delete(_path(self._query, shown=False))
        self._load(shown=False)

    # --- one round

    def _add(self, source: CheckpointReader, closure: Closure, before: Callable[[int], object]) -> tuple[int, int]:
        rounds = [self._missing(source, closure, phase) for phase in phases(closure)]
        files = sum(len(written) + len(copied) for written, copied in rounds)
        size = sum(sum(map(len, written.values())) + sum(copied.values()) for written, copied in rounds)
        self._staging.begin(CopyProgress(files, size))
        parts = self._staged(source, rounds, before) if size <= AT_ONCE else {}
        for number, (written, copied) in enumerate(rounds):
            if number == len(rounds) - 1:
                _confirm(source, closure)
            self._staging.show({path: parts[path] for path in (*written, *copied) if path in parts})
            self._staging.add(source.tree, {path: copied[path] for path in copied if path not in parts}, before)
            replaced = {path: data for path, data in written.items() if path not in parts}
            for data in replaced.values():
                before(len(data))
            self._staging.put(replaced)
            self._present |= copied | {path: len(data) for path, data in written.items()}
            self._digests |= {path: _digest(data) for path, data in written.items()}
        return files, size

    def _staged(
        self,
        source: CheckpointReader,
        rounds: list[tuple[dict[str, bytes], dict[str, int]]],
        before: Callable[[int], object],
    ) -> dict[str, str]:
        """Copy the new files of all phases beside the tree; those that replace one are written in their phase."""
        written = {path: data for each, _ in rounds for path, data in each.items() if path not in self._present}
        copied = {path: size for _, each in rounds for path, size in each.items()}
        return self._staging.stage(source.tree, copied, written, before)

    def _missing(
        self, source: CheckpointReader, closure: Closure, phase: list[str]
    ) -> tuple[dict[str, bytes], dict[str, int]]:
        """Return what is to be written, as it was read, and the sizes of what is to be copied."""
        written, copied = {}, {}
        for path in phase:
            there = self._present.get(path)
            if there is not None and is_unique(path):
                continue
            data = _content(source, path, closure)
            if data is None:
                if there is None:
                    copied[path] = closure.files[path]
            elif there != len(data) or self._digests.get(path) != _digest(data):
                written[path] = data
        return written, copied

    def _sweep(self) -> int:
        for batch in sorted(self._held)[: -self._retained]:
            del self._held[batch]
        swept = 0
        for paths in surplus(self._present, self._held.values()):
            self._staging.remove(paths)
            swept += len(paths)
            for path in paths:
                del self._present[path]
                self._digests.pop(path, None)
        return swept


def promotable(files: BoundedFiles, directory: FencedDirectory, query: str) -> tuple[str, Closure] | None:
    """Return where the newest complete replica of a query is, in the leader directory, and its newest closure."""
    for shown in (False, True):  # one that is complete beside the place is of the newer line
        path = _path(query, shown=shown)
        reader = CheckpointReader(Tree(files, directory.at(path)))
        try:
            names = reader.files()
        except NotFound:
            directory.check()
            continue
        for batch in reversed(names.batches):
            (found,) = reader.closures(names, [batch])
            if found.restorable:
                return path, found
    return None


def settle(directory: FencedDirectory, query: str) -> bool:
    """Put a complete replica of another line in place; return whether an old one went to the trash. Can be repeated."""
    queries = QueryCheckpoints(directory)
    if taken := queries.has(query):
        queries.discard(query)
    queries.show(_path(query, shown=False), query)
    return taken


def _path(query: str, *, shown: bool) -> str:
    return f"{SPARK}/{query}" if shown else f"{COPYING}/{query}/tree"


def _content(source: CheckpointReader, path: str, closure: Closure) -> bytes | None:
    """Return the whole content of a file if the closure was computed from it, or makes it."""
    if path in closure.rebuilt:
        return source.rebuilt(path, closure.rebuilt[path])
    data = source.known.get(path)
    return data if data is not None and len(data) == closure.files.get(path) else None


def _confirm(source: CheckpointReader, closure: Closure) -> None:
    """Raise ``Conflict`` if the source was put back, and has come here once more, while its files were copied."""
    offsets = f"offsets/{closure.batch}"
    if source.tree.head(offsets, MOST_BYTES) != source.known[offsets]:
        raise Conflict(f"{source.tree.uri} was put back while it was replicated: look again.")


def _same(path: str, here: bytes | None, there: bytes | None) -> bool:
    if here is None or there is None or not METADATA.fullmatch(path):
        return here == there
    with suppress(Invalid):  # it names its own place, which changes with each leader
        return relocated("", here) == relocated("", there)
    return here == there


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
