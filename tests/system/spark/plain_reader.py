"""A plain reader beside an output: it lists everything and reads everything at every moment, and trusts nobody.

What Spark writes lies in the store before the output moves it.
"""

import json
import random
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self, TypeVar, cast

from pyspark.sql import DataFrame

from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.outputs.ledger import Gap
from ha.outputs.reading import BatchCondition, JournalReader
from ha.spark import Output
from ha.spark.stored.ledger import Ledger
from ha.spark.stored.ledger_watch import PAUSE_S, LedgerWatch
from leader.errors import OutputLost
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import ConnectionLost, NotFound, StoreError
from store.files import Entry, Files
from store.outcome import Outcome
from tests.system.spark.batches import Batch, Query, Session
from tests.system.spark.faulty_store import ROOT, FaultyStore, Tree

T = TypeVar("T")

JOB = "jobs/orders"
OUT = "out/orders"

QUERY, QUERY_ID = "orders", str(uuid.UUID(int=7))

STEP_S = 1000
"""Of a day, and of the watermark from one batch to the next."""


class Directory:
    """The leader directory, as it is: no call fails."""

    def __init__(self, store: FaultyStore, home: str) -> None:
        self._store, self._home = store, home

    def list(self, folder: str = "") -> list[Entry]:
        with suppress(NotFound):
            return self._store.tree.list(f"{self._home}/{folder}".rstrip("/"))
        return []

    def read(self, path: str, most: int = 0) -> bytes:
        del most
        content = self._store.tree.nodes.get(f"{self._home}/{path}")
        if content is None:
            raise NotFound(path)
        return content


class AtOnce(BoundedFiles):
    """Calls on the thread of the caller: a store in memory answers at once, and threads would take most of the time."""

    def __init__(self, store: FaultyStore, uri: str) -> None:
        super().__init__(lambda: store, uri=uri, workers=1)
        self._store = store

    def outcome(self, name: str, operation: Callable[[Files], T], timeout: float) -> Outcome[T]:
        del name, timeout
        began = now()
        try:
            return Outcome(operation(self._store), None, began, now())
        except StoreError as error:
            return Outcome(None, error, began, now())


class OneByOne(JournalReader):
    """Looks at one batch after the other, for the same reason."""

    def _side_by_side(self, what: Callable[[int], T], ids: list[int]) -> Iterator[T]:
        return map(what, ids)


class Target:
    """The directory of the output, as it is: no call fails."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def call(self, _: str, operation: Callable[[Any], list[Entry]], __: float) -> list[Entry]:
        return operation(self)

    def list(self, path: str) -> list[Entry]:
        return self._tree.list(f"{OUT}/{path}".rstrip("/"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Watched:
    """What a leader of the job tells of its books; each look is due."""

    def __init__(self, store: FaultyStore, home: str) -> None:
        self.told: list[str] = []
        self._at = 0.0
        leadership = SimpleNamespace(
            own=Directory(store, home), job="orders", directory=f"file://{ROOT}/{home}", keep_failure=self._keep,
            open_files=lambda _: Target(store.tree),
        )  # fmt: skip
        self._watch = LedgerWatch(cast("Leadership", leadership), lambda: None, lambda: self._at)

    def _keep(self, kind: str, message: str, *, query: str) -> None:
        assert (kind, query) == ("OutputGap", QUERY)
        self.told.append(message)

    def committed(self, batch: int) -> list[str]:
        """Have it look, and return all that it has told."""
        self._watch.committed(QUERY, batch)
        self._at += 10 * PAUSE_S
        return self.told


@dataclass(eq=False)
class Home:
    store: FaultyStore
    epoch: int
    session_id: str
    job: str = "orders"
    settling: threading.Event = field(default_factory=threading.Event)

    @property
    def own(self) -> "Home":
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
        return AtOnce(self.store, uri)


class SimulatedBatch(Batch):
    """Spark writes its files, with all folders above; nobody can tell it that its leader directory is another's."""

    def __init__(self, store: FaultyStore, rows: dict[str, dict[str, bytes]], session: Session | None = None) -> None:
        super().__init__({}, session)
        self.store, self.rows = store, rows

    def save(self, uri: str) -> dict[str, dict[str, int]]:
        path = uri.removeprefix(f"file://{ROOT}/")
        tree = self.store.tree
        tree.make_parents(path)
        for partition, files in self.rows.items():
            tree.make_parents(f"{path}/{partition}".rstrip("/"))
            for name, content in files.items():
                tree.nodes[f"{path}/{partition}/{name}".replace("//", "/")] = content
        self.store.acknowledged = None  # Spark waits for its answers
        return {partition: {name: len(each) for name, each in files.items()} for partition, files in self.rows.items()}


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
        self.home: Home
        self.watched: Watched
        self.pauses: list[float] = []
        self.running: dict[str, Query] = {}  # of the present driver
        self.partitioned = self.choose.random() < 0.7

    def go(self, most_drivers: int = 200) -> "Run":
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
                    self._commit(batch)
                    self.reader.wrong += [f"a gap: {gap.why}" for gap in self.gaps()]
                    self.reader.wrong += self.watched.committed(batch)
                    batch += 1
            except OutputLost as lost:
                self.lost = lost
                break
            except StoreError:
                pass
            finally:
                self._ended(*self.running)
                if output is not None:
                    output.close()
        self.store.catch_up()
        self.reader.check_complete()
        return self

    def _commit(self, batch: int) -> None:
        checkpoint = f"{JOB}/{self.home.name}/spark/{QUERY}"
        if self.choose.random() < self.store.rate:
            raise ConnectionLost("dead")
        self.store.tree.make_parents(f"{checkpoint}/commits")
        self.store.tree.nodes[f"{checkpoint}/commits/{batch}"] = b"v1\n{}"
        self.store.acknowledged = None

    def gaps(self) -> list[Gap]:
        directory = Directory(self.store, f"{JOB}/{self.home.name}")
        reader = OneByOne(lambda: cast("FencedDirectory", directory))
        books, found = Ledger(cast("FencedDirectory", directory)), []
        for output in reader.outputs():
            rows = list(reader.listed(output, [each for ids in reader.ids(output, range(1 << 62)) for each in ids]))
            after, plans = {row.batch: row.after for row in rows}, {row.batch: row.plan for row in rows}
            found += books.whole(output.folder.removeprefix("out/"), after, plans, output.thousands)
            found += [Gap(output.name, 1, f"{row}") for row in rows if row.condition == BatchCondition.UNKNOWN]
        return found

    def _open(self, home: Home) -> Any:
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
        self.home, self.watched = home, Watched(store, f"{JOB}/{home.name}")
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
        return SimulatedBatch(self.store, rows, self._planned(batch))

    def _planned(self, batch: int, query: str = QUERY) -> Session:
        """Have Spark write down what a batch reads; returns the session that runs it."""
        tree, checkpoint = self.store.tree, f"{JOB}/{self.home.name}/spark/{query}"
        identity = QUERY_ID if query == QUERY else str(uuid.uuid5(uuid.NAMESPACE_OID, query))
        if f"{JOB}/{self.home.name}" in tree.nodes:
            tree.make_parents(f"{checkpoint}/offsets")
            tree.nodes[f"{checkpoint}/metadata"] = json.dumps({"id": identity}).encode()
            tree.nodes[f"{checkpoint}/offsets/{batch}"] = offsets(batch)
        running = self.running.setdefault(query, Query(identity, query, f"file://{ROOT}/{checkpoint}"))
        running.batch = batch
        return Session(running)

    def _ended(self, *queries: str) -> None:
        """Let queries run no longer; their next batch is of another run."""
        for each in queries:
            if (running := self.running.pop(each, None)) is not None:
                running.active = False

    def _clean_up_later(self) -> None:
        """Once a batch is decided, a clean-up job deletes something of its rows, during a pause of the driver."""
        store, rename = self.store, self.store.tree.rename

        def then_clean_up(source: str, target: str) -> None:
            rename(source, target)
            below = [each for each in store.tree.below(target) if f"/{layout.ROWS}" in each]
            store.tree.delete(self.choose.choice(below), recursive=True)
            self.injected += 1
            self.pauses.append(3600.0)
            store.acknowledged, store.settled = None, True

        def once(source: str, target: str) -> None:
            if f"/{layout.READY}/" not in target:
                rename(source, target)
                return
            cast("Any", store.tree).__dict__.pop("rename", None)
            then_clean_up(source, target)

        cast("Any", store.tree).rename = once


def offsets(batch: int) -> bytes:
    said = {"batchWatermarkMs": batch * STEP_S * 1000, "batchTimestampMs": 10**12 + batch * STEP_S * 1000, "conf": {}}
    return f'v1\n{json.dumps(said)}\n{{"logOffset":{batch}}}'.encode()


def runs(seeds: Iterable[int], **arguments: Any) -> list[Run]:
    return [Run(seed, **arguments).go() for seed in seeds]
