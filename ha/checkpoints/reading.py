"""Reading: runs closures against a real directory, with many readers, and each small file read once."""

from collections.abc import Generator, Iterable
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ha.checkpoints.by_names import by_names
from ha.checkpoints.closure import Closure, Contents, Parsed, Wanted, closure
from ha.checkpoints.contents import LINEAGE_BYTES, rebuilt_log
from ha.checkpoints.names import CheckpointFiles
from ha.checkpoints.trees import Tree
from store.errors import NotFound

T = TypeVar("T")

READERS = 32
"""Files that are read at once: reading a small one is waiting for the most part."""

LOT = 16
"""Files that one call reads at most. Where there are thousands, handing one to a thread costs more than reading it."""

MOST_BYTES = 16 << 20
"""Longest small file. The log of a file source has a line a file, so it is the longest one."""


class CheckpointReader:
    """One checkpoint directory. The contents that were read are kept for as long as this object.

    Attributes:
        reads: number of files that were read.
        bytes: number of bytes that were read.
    """

    def __init__(self, tree: Tree, known: Contents | None = None) -> None:
        """Read nothing yet; ``known`` are contents that need not be read."""
        self.tree = tree
        self.reads = self.bytes = 0
        self._known: dict[str, bytes | None] = dict(known or {})

    def files(self) -> CheckpointFiles:
        """List the directory.

        Raises:
            NotFound: there is none, or one below it has just disappeared.
            StoreError: the store did not answer.
        """
        return CheckpointFiles(self.tree.listing())

    def closures(self, files: CheckpointFiles, batches: Iterable[int], *, begun: bool = False) -> list[Closure]:
        """Return the closures of these batches, by number; all are computed side by side.

        Args:
            files: the names of the checkpoint.
            batches: the batches.
            begun: see :func:`ha.checkpoints.closure.closure`.

        Raises:
            StoreError: the store did not answer.
        """
        parsed: Parsed = {}
        asking = {batch: closure(files, batch, parsed, begun=begun) for batch in batches}
        done: dict[int, Closure] = {}
        said: Contents | None = None
        while asking:
            wanted: set[str] = set()
            for batch, each in list(asking.items()):
                try:
                    wanted |= each.send(said)  # type: ignore[arg-type]  # None starts it
                except StopIteration as end:
                    done[batch] = end.value
                    del asking[batch]
            said = self.contents(wanted)
        return [done[batch] for batch in sorted(done)]

    def by_names(self, files: CheckpointFiles, batches: Iterable[int]) -> list[Closure]:
        """Return what names tell of these batches; see :mod:`ha.checkpoints.by_names`.

        Raises:
            StoreError: the store did not answer.
        """
        return self.run(by_names(files, batches))

    def run(self, asking: Generator[Wanted, Contents, T]) -> T:
        """Give a computation the contents that it asks for, and return its result.

        Raises:
            StoreError: the store did not answer.
        """
        said: Contents | None = None
        while True:
            try:
                said = self.contents(asking.send(said))  # type: ignore[arg-type]  # None starts it
            except StopIteration as end:
                found: T = end.value
                return found

    def contents(self, paths: AbstractSet[str]) -> Contents:
        """Return what these files say: None of one that does not exist, and only the head of a changelog.

        Raises:
            StoreError: the store did not answer.
        """
        unknown = sorted(paths - self._known.keys())
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
        """Return the content of a file that is missing and can be made; see :attr:`Closure.rebuilt`.

        Raises:
            NotFound: the file that it is made from is gone.
            StoreError: the store did not answer.
        """
        data = self.contents({origin})[origin]
        if data is None:
            raise NotFound(f"{origin} does not exist.")
        if path.startswith("offsets/"):
            return data
        return rebuilt_log(data, int(path.rpartition("/")[2].removesuffix(".compact")))

    def _read(self, lot: list[str]) -> list[bytes | None]:
        return self.tree.heads({path: LINEAGE_BYTES if path.endswith(".changelog") else MOST_BYTES for path in lot})
