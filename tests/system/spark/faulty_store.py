"""A store in memory with the faults of a real one, drawn from a seed.

Answers are lost, come late, or answer a second execution; changes are executed late, or twice; a NameNode forgets what
it showed; a driver dies at any call. So each run is the same for ever.
"""

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from store.errors import AlreadyExists, ConnectionLost, Invalid, NoSpace, NotEmpty, NotFound, NotWritable, StoreError
from store.files import Entry

ROOT = "/sim"

FAULTS = ("lost", "late", "dropped", "refused", "retried", "twice", "forget", "die-before", "die-after")


class Tree:
    """A file system in memory: a folder is None, a file its content."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes | None] = {"": None}
        self.full: set[str] = set()
        """Folders that take no more entries."""
        self.clock = 0
        self.changed: dict[str, int] = {}
        """When an entry was made in a folder, or taken out of it, if ever."""

    def copy(self) -> "Tree":
        other = Tree()
        other.nodes, other.full = dict(self.nodes), self.full
        other.clock, other.changed = self.clock, dict(self.changed)
        return other

    def touch(self, path: str) -> None:
        self.clock += 1
        self.changed[path.rpartition("/")[0]] = self.clock

    def take(self, path: str) -> None:
        if path not in self.nodes and path.rpartition("/")[0] in self.full:
            raise NoSpace(path)

    def below(self, path: str) -> list[str]:
        start = f"{path}/"
        return (
            [each for each in self.nodes if each.startswith(start)] if path else [each for each in self.nodes if each]
        )

    def list(self, path: str) -> list[Entry]:
        if path not in self.nodes:
            raise NotFound(path)
        if self.nodes[path] is not None:
            raise Invalid(path)
        start = len(path) + 1 if path else 0
        found = [each for each in self.below(path) if each.find("/", start) < 0]
        return [
            Entry(each[start:], content is None, len(content or b""), self.changed.get(each, 0))
            for each in found
            for content in [self.nodes[each]]
        ]

    def parent(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if parent not in self.nodes or self.nodes[parent] is not None:
            raise NotFound(parent)

    def make_directory(self, path: str) -> None:
        self.parent(path)
        self.take(path)
        if path not in self.nodes:
            self.touch(path)
            self.changed[path] = self.clock
        if self.nodes.setdefault(path) is not None:
            raise AlreadyExists(path)

    def make_parents(self, path: str) -> None:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            self.nodes.setdefault("/".join(parts[:end]))

    def rename(self, source: str, target: str) -> None:
        if source not in self.nodes:
            raise NotFound(source)
        self.parent(target)
        if target in self.nodes:
            raise AlreadyExists(target)
        if source.rpartition("/")[0] != target.rpartition("/")[0]:  # as HDFS does it
            self.take(target)
        for each in [source, *self.below(source)]:
            self.nodes[target + each[len(source) :]] = self.nodes.pop(each)
            if each in self.changed:
                self.changed[target + each[len(source) :]] = self.changed.pop(each)
        self.touch(source)
        self.touch(target)

    def write(self, path: str, data: bytes) -> None:
        self.parent(path)
        self.take(path)
        self.nodes[path] = data

    def concat(self, target: str, sources: Sequence[str]) -> None:
        """As HDFS does it: all or nothing, in one folder, and nothing that is empty."""
        for each in (target, *sources):
            if self.nodes.get(each) is None:
                raise NotFound(each)
            if each.rpartition("/")[0] != target.rpartition("/")[0] or (each != target and not self.nodes[each]):
                raise Invalid(each)
        self.nodes[target] = b"".join(self.nodes[each] or b"" for each in (target, *sources))
        for each in sources:
            del self.nodes[each]

    def delete(self, path: str, recursive: bool) -> None:
        if path not in self.nodes:
            raise NotFound(path)
        below = self.below(path)
        if below and not recursive:
            raise NotEmpty(path)
        for each in [path, *below]:
            del self.nodes[each]
            self.changed.pop(each, None)
        self.touch(path)


class FaultyStore:
    """A :class:`store.files.Files` over a tree, whose changes meet fates; ``changed`` is told of each execution."""

    uri = f"file://{ROOT}"

    def __init__(self, choose: random.Random, rate: float, changed: Callable[[], None]) -> None:
        self.choose, self.rate, self.changed = choose, rate, changed
        self.pace = choose.choice((0.01, 0.1, 0.5))
        """How soon late changes are executed."""
        self.tree = Tree()
        self.acknowledged: Tree | None = None
        """The tree before the first change that was not acknowledged; None if all were."""
        self.late: list[Callable[[], None]] = []
        self.alive = True
        self.settled = False
        self.met: list[str] = []
        self._lock = threading.RLock()

    def list(self, path: str) -> list[Entry]:
        with self._lock:
            if self.choose.random() < self.rate / 4:
                self.forget()
            return self.tree.list(path)

    def make_directory(self, path: str) -> None:
        self._meet(lambda: self.tree.make_directory(path))

    def rename(self, source: str, destination: str) -> None:
        self._meet(lambda: self.tree.rename(source, destination))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._meet(lambda: self.tree.delete(path, recursive))

    def make_root(self) -> None:
        raise NotImplementedError

    def read(self, path: str, limit: int) -> bytes:
        del limit
        with self._lock:
            if not self.alive:
                raise ConnectionLost("dead")
            if path not in self.tree.nodes:
                raise NotFound(path)
            content = self.tree.nodes[path]
            if content is None:
                raise Invalid(path)
            return content

    def write(self, path: str, data: bytes) -> None:
        self._meet(lambda: self.tree.write(path, data))

    def concat(self, path: str, sources: Sequence[str]) -> None:
        self._meet(lambda: self.tree.concat(path, sources))

    def close(self) -> None:
        pass

    def forget(self) -> None:
        """Another NameNode takes over: it knows what was acknowledged, and nothing else."""
        if self.acknowledged is not None:
            self.tree, self.acknowledged = self.acknowledged, None
            self.changed()

    def catch_up(self, rate: float = 1.0) -> None:
        """Execute late changes; nobody hears how they end."""
        for each in [each for each in self.late if self.choose.random() < rate]:
            self.late.remove(each)
            self._unheard(each)

    def _do(self, change: Callable[[], None]) -> None:
        """Execute a change and acknowledge it: the journal has it, and all before it."""
        change()
        self.acknowledged = None
        self.changed()

    def _unheard(self, change: Callable[[], None]) -> None:
        """Execute a change whose end nobody hears: it may be forgotten."""
        before = self.tree.copy()
        with suppress(StoreError):
            change()
            self.acknowledged = self.acknowledged or before
        if self.settled:  # another client's change was acknowledged meanwhile
            self.acknowledged, self.settled = None, False
        self.changed()

    def _meet(self, change: Callable[[], None]) -> None:
        with self._lock:
            if not self.alive:
                raise ConnectionLost("dead")
            self.catch_up(self.pace)
            fate = self.choose.choice(FAULTS) if self.choose.random() < self.rate else "ok"
            self.met.append(fate)
            match fate:
                case "refused":
                    raise NotWritable("Safe mode.")
                case "late" | "dropped" | "lost" | "die-before" | "die-after":
                    self.alive = not fate.startswith("die")
                    if fate in ("lost", "die-after"):
                        self._unheard(change)
                    elif fate == "late" or (fate == "die-before" and self.choose.random() < 0.5):
                        self.late.append(change)
                    raise ConnectionLost("no answer")
                case "forget":
                    self.forget()
                case "twice":
                    self.late.append(change)
                case "retried":  # the answer to the first execution was lost, and a proxy has asked again
                    self._do(change)
            self._do(change)
