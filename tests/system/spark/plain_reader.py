"""A plain reader beside an output: it lists everything and reads everything at every moment, and trusts nobody.

The store is a simulation with the faults of a real one, drawn from a seed: answers that are lost, come late, or answer
a second execution; changes that are executed late, or twice; a NameNode that forgets what it showed; a driver that dies
at any call. What Spark writes lies in the store before the output moves it. So each run is the same for ever.
"""

import random
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from pyspark.sql import DataFrame

from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.spark import Output
from leader.errors import OutputLost
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, ConnectionLost, Invalid, NotEmpty, NotFound, NotWritable, StoreError
from store.files import Entry
from tests.system.spark.batches import Batch

ROOT = "/sim"
JOB = "jobs/orders"
OUT = "out/orders"

FAULTS = ("lost", "late", "dropped", "refused", "retried", "twice", "forget", "die-before", "die-after")


class Tree:
    """A file system in memory: a folder is None, a file its content."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes | None] = {"": None}

    def copy(self) -> "Tree":
        other = Tree()
        other.nodes = dict(self.nodes)
        return other

    def below(self, path: str) -> list[str]:
        start = f"{path}/" if path else ""
        return [each for each in self.nodes if each.startswith(start) and each not in ("", path)]

    def list(self, path: str) -> list[Entry]:
        if path not in self.nodes:
            raise NotFound(path)
        if self.nodes[path] is not None:
            raise Invalid(path)
        start = len(path) + 1 if path else 0
        found = [each for each in self.below(path) if "/" not in each[start:]]
        return [
            Entry(each[start:], content is None, len(content or b""), 0)
            for each in found
            for content in [self.nodes[each]]
        ]

    def parent(self, path: str) -> None:
        parent = path.rpartition("/")[0]
        if parent not in self.nodes or self.nodes[parent] is not None:
            raise NotFound(parent)

    def make_directory(self, path: str) -> None:
        self.parent(path)
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
        for each in [source, *self.below(source)]:
            self.nodes[target + each[len(source) :]] = self.nodes.pop(each)

    def write(self, path: str, data: bytes) -> None:
        self.parent(path)
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
        raise NotImplementedError

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


@dataclass(eq=False)
class Home:
    """As much of a leadership as an output needs."""

    store: FaultyStore
    epoch: int
    session_id: str
    job: str = "orders"
    settling: threading.Event = field(default_factory=threading.Event)

    @property
    def own(self) -> "Home":
        """The leader directory as a store."""
        return self

    def list(self) -> list[Entry]:
        """Return no entries: nobody has begun to put a query back."""
        return []

    @property
    def name(self) -> str:
        return LeaderDirectory(self.epoch, self.session_id).name

    @property
    def directory(self) -> str:
        return f"file://{ROOT}/{JOB}/{self.name}"

    def path(self, relative: str) -> str:
        return f"{self.directory}/{relative}"

    def open_files(self, uri: str) -> BoundedFiles:
        assert uri == f"file://{ROOT}"
        return BoundedFiles(lambda: self.store, uri=uri, workers=1)


class SimulatedBatch(Batch):
    """Spark writes its files, with all folders above; nobody can tell it that its leader directory is another's."""

    def __init__(self, store: FaultyStore, rows: dict[str, dict[str, bytes]]) -> None:
        super().__init__({})
        self.store, self.rows = store, rows

    def save(self, uri: str) -> None:
        path = uri.removeprefix(f"file://{ROOT}/")
        tree = self.store.tree
        tree.make_parents(path)
        for partition, files in self.rows.items():
            tree.make_parents(f"{path}/{partition}".rstrip("/"))
            for name, content in files.items():
                tree.nodes[f"{path}/{partition}/{name}".replace("//", "/")] = content
        self.store.acknowledged = None  # Spark waits for its answers


@dataclass
class Reader:
    """Sees all files below the output's directory; ``wrong`` says what should not be."""

    store: FaultyStore | None = None
    tries: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Of each file's content: batch, try, and number of files of that try."""
    complete: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    polls: int = 0
    _last: dict[str, bytes] = field(default_factory=dict)

    def poll(self) -> None:
        """List and read everything."""
        assert self.store is not None
        self.polls += 1
        nodes = self.store.tree.nodes
        files = {path: content for path, content in nodes.items() if content is not None and path.startswith(f"{OUT}/")}
        seen = {path: content for path, content in files.items() if not layout.hidden(path.rpartition("/")[2])}
        if seen == self._last:
            return
        self._last = seen
        counts: dict[int, dict[int, int]] = {}
        rows: dict[bytes, str] = {}
        for path, content in seen.items():
            if content in rows:
                self.wrong.append(f"{path} and {rows[content]} have the same rows")
            rows[content] = path
            known = self.tries.get(content.decode())
            if known is None:
                self.wrong.append(f"{path} is a part of a file, or nobody's: {content!r}")
                continue
            batch, number, _ = known
            if f"/batch={batch}/" not in path:
                self.wrong.append(f"{path} has rows of batch {batch}")
            counts.setdefault(batch, {}).setdefault(number, 0)
            counts[batch][number] += 1
        for batch, tries in counts.items():
            if len(tries) > 1:
                self.wrong.append(f"batch {batch} has rows of tries {sorted(tries)}")

    def whole(self, batch: int) -> None:
        """A batch is said to be complete: from now on all files of one try of it are there, whatever happens."""
        self.complete.add(batch)

    def check_complete(self) -> None:
        """Look for every file of every complete batch."""
        assert self.store is not None
        self._last = {}
        self.poll()
        for batch in sorted(self.complete):
            found = [self.tries[content.decode()] for content in self._last.values()
                     if content.decode() in self.tries and self.tries[content.decode()][0] == batch]  # fmt: skip
            if not found or len(found) != found[0][2]:
                self.wrong.append(f"batch {batch} is complete, and {len(found)} of its files are there")


class Run:
    """One job with one output, its drivers one after the other, and a reader, by a seed."""

    def __init__(self, seed: int, *, batches: int = 6, rate: float = 0.15, cleaner: float = 0.0) -> None:
        self.choose = random.Random(seed)  # noqa: S311  # a simulation
        self.reader = Reader()
        self.store = FaultyStore(self.choose, rate, self.reader.poll)
        self.reader.store = self.store
        self.batches, self.cleaner = batches, cleaner
        self.tries = 0
        self.drivers = 0
        self.injected = 0
        self.lost: OutputLost | None = None
        self.pauses: list[float] = []
        self.partitioned = self.choose.random() < 0.7

    def go(self, most_drivers: int = 200) -> "Run":
        """Do all batches, with as many drivers as it takes."""
        tree = self.store.tree
        tree.make_parents("out")
        tree.make_parents(JOB)
        home = self._lead(None)
        batch = 0
        while batch < self.batches:
            self.drivers += 1
            assert self.drivers < most_drivers, "it does not come to an end"
            if self.choose.random() < 0.5:
                home = self._lead(home)
            self.store.alive = True
            if self.drivers > most_drivers // 2:
                self.store.rate = 0.0
            output: Any = None
            try:
                output = self._open(home)
                while batch < self.batches:
                    output.write(cast("DataFrame", self._batch(batch)), batch)
                    self.reader.whole(batch)
                    self.reader.check_complete()
                    batch += 1
            except OutputLost as lost:
                self.lost = lost
                break
            except StoreError:
                pass
            finally:
                if output is not None:
                    output.close()
        self.store.catch_up()
        self.reader.check_complete()
        return self

    def _open(self, home: Home) -> Any:
        """Start a driver."""
        return Output(
            cast("Leadership", home), f"file://{ROOT}/{OUT}", partition_by=["day"] if self.partitioned else []
        )

    def _lead(self, before: Home | None) -> Home:
        """Claim the leader directory; what was not acknowledged of the old one may be gone by then."""
        store = self.store
        if self.choose.random() < 0.3:
            store.forget()
        home = Home(store, 1 if before is None else before.epoch + 1, str(uuid.UUID(int=self.choose.getrandbits(128))))
        if before is None:
            store.tree.make_parents(f"{JOB}/{home.name}/record")
        else:
            store.tree.rename(f"{JOB}/{before.name}", f"{JOB}/{home.name}")
        store.acknowledged = None
        return home

    def _batch(self, batch: int) -> SimulatedBatch:
        self.tries += 1
        days = self.choose.sample(range(4), self.choose.randint(1, 4)) if self.partitioned else [0]
        rows: dict[str, dict[str, bytes]] = {}
        for day in days:
            names = [f"part-{number:05d}" for number in range(self.choose.randint(1, 2))]
            rows[f"day={day}" if self.partitioned else ""] = {
                name: f"batch {batch} try {self.tries} day {day} {name} end".encode() for name in names
            }
        contents = [content.decode() for files in rows.values() for content in files.values()]
        for each in contents:
            self.reader.tries[each] = (batch, self.tries, len(contents))
        if self.choose.random() < self.cleaner:
            self._clean_up_later()
        return SimulatedBatch(self.store, rows)

    def _clean_up_later(self) -> None:
        """Once a batch is decided, a clean-up job deletes something of its rows, during a pause of the driver."""
        store, rename = self.store, self.store.tree.rename

        def then_clean_up(source: str, target: str) -> None:
            rename(source, target)
            if f"/{layout.READY}/" not in target:
                return
            below = [each for each in store.tree.below(target) if f"/{layout.ROWS}" in each]
            store.tree.delete(self.choose.choice(below), recursive=True)
            self.injected += 1
            self.pauses.append(3600.0)
            store.acknowledged, store.settled = None, True

        def once(source: str, target: str) -> None:
            cast("Any", store.tree).__dict__.pop("rename", None)
            then_clean_up(source, target)

        cast("Any", store.tree).rename = once


def runs(seeds: Iterable[int], **arguments: Any) -> list[Run]:
    """Return a run for each seed."""
    return [Run(seed, **arguments).go() for seed in seeds]
