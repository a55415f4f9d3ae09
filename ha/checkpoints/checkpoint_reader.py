"""CheckpointReader: runs closures against a real directory, with many readers, and each small file read once."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ha.checkpoints.check_sums import hadoop_sums
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.closure import Closure, Contents, Parsed, Wanted
from ha.checkpoints.contents import LINEAGE_BYTES, rebuilt_log
from ha.checkpoints.state_versions import closure, start
from ha.checkpoints.trees import Tree
from store.errors import NotFound
from store.files import Entry

Kept = Mapping[str, tuple[Entry, bytes]]  # what files say, by path, and the size and time that they had

T = TypeVar("T")

READERS = 32  # files that are read at once: reading a small one is waiting for the most part
LOT = 16  # files that one call reads at most; of thousands, handing one to a thread costs more than reading it
MOST_BYTES = 16 << 20  # longest small file. The log of a file source has a line a file, so it is the longest one


class CheckpointReader:
    """One checkpoint directory. The contents that were read are kept for as long as this object.

    Attributes:
        reads: number of files that were read.
        bytes: number of bytes that were read.
    """

    def __init__(self, tree: Tree, kept: Kept | None = None) -> None:
        """Read nothing yet; ``kept`` by another reader is not read again where size and time are the same."""
        self.tree = tree
        self.reads = self.bytes = 0
        self._kept = kept or {}
        self._entries: dict[str, Entry] = {}
        self._known: dict[str, bytes | None] = {}
        self._parsed: Parsed = {}

    def files(self) -> CheckpointFiles:
        """List the directory; raises ``NotFound`` if there is none, or one below it has just disappeared."""
        found = self.tree.names()
        folders = [path for path, entry in found.items() if entry.is_directory]
        self._entries = {path: entry for path, entry in found.items() if not entry.is_directory}
        self._known |= {path: data for path, (was, data) in self._kept.items() if self._entries.get(path) == was}
        return CheckpointFiles({path: entry.size for path, entry in self._entries.items()}, folders=folders)

    def kept(self) -> Kept:
        """Return what was read of the files that were listed."""
        return {
            path: (self._entries[path], data)
            for path, data in self._known.items()
            if data is not None and path in self._entries
        }

    def closures(self, files: CheckpointFiles, batches: Iterable[int], *, begun: bool = False) -> list[Closure]:
        """Return these batches' closures by number, computed side by side; ``begun`` as for :func:`closure`."""
        return self._side_by_side([closure(files, each, self._parsed, begun=begun) for each in sorted({*batches})])

    def start(self, files: CheckpointFiles) -> Closure:
        """Return what a start of the query as it lies reads, or misses; see :func:`start`."""
        return self.run(start(files, self._parsed))

    def run(self, asking: Generator[Wanted, Contents, T]) -> T:
        """Give a computation the contents that it asks for, and return its result."""
        return self._side_by_side([asking])[0]

    def _side_by_side(self, asking: Sequence[Generator[Wanted, Contents, T]]) -> list[T]:
        """Give computations the contents that they ask for, and return their results in the same order."""
        done: dict[int, T] = {}
        said: Contents | None = None
        while len(done) < len(asking):
            wanted: set[str] = set()
            for number, each in enumerate(asking):
                if number not in done:
                    try:
                        wanted |= each.send(said)  # type: ignore[arg-type]  # None starts it
                    except StopIteration as end:
                        done[number] = end.value
            said = self.contents(wanted)
        return [done[number] for number in range(len(asking))]

    def contents(self, paths: AbstractSet[str]) -> Contents:
        """Return what these files say: None of one that does not exist, and only the head of a changelog."""
        sums = {each for each in map(hadoop_sums, paths) if each in self._entries}
        unknown = sorted((paths | sums if self.tree.local else paths) - self._known.keys())
        if unknown:
            size = min(LOT, -(-len(unknown) // READERS))
            lots = [unknown[begin : begin + size] for begin in range(0, len(unknown), size)]
            with ThreadPoolExecutor(len(lots[:READERS]), thread_name_prefix="ha-checkpoint") as crew:
                for lot, said in zip(lots, crew.map(self._read, lots), strict=True):
                    self._known.update(zip(lot, said, strict=True))
                    self.bytes += sum(len(data or b"") for data in said)
            self.reads += len(unknown)
        return self._known

    @property
    def known(self) -> Contents:
        """The contents that were read until now; of a long changelog only the head."""
        return self._known

    def rebuilt(self, path: str, origin: str) -> bytes:
        """Return the content of a file that is missing and can be made; see :attr:`Closure.rebuilt`."""
        data = self.contents({origin})[origin]
        if data is None:
            raise NotFound(f"{origin} does not exist.")
        if path.startswith("offsets/"):
            return data
        return rebuilt_log(data, int(path.rpartition("/")[2].removesuffix(".compact")))

    def _read(self, lot: list[str]) -> list[bytes | None]:
        return self.tree.heads({path: LINEAGE_BYTES if path.endswith(".changelog") else MOST_BYTES for path in lot})
