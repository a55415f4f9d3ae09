"""A replication beside a simulated Spark: all on one thread, and killed before or after any call of a store."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Self, TypeVar, cast

import pytest

from ha.checkpoints import checkpoint_reader, trees
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.trees import Tree
from ha.spark.checkpoint_tools import copying
from ha.spark.replication.replica import Replica, promotable
from leader.job.fenced_directory import FencedDirectory
from leader.layout import tree as job_tree
from store.bounded import BoundedFiles
from store.errors import Conflict, NotFound, StoreError, Unknown
from store.files import Files
from store.local import LocalFiles
from store.outcome import Outcome
from tests.unit.ha.checkpoints.simulated_spark import SimulatedSpark

T = TypeVar("T")
R = TypeVar("R")

JOB, QUERY = "orders.replica", "daily"
RETAINED = 3


class Killed(BaseException):
    """The replicator was killed."""


class OneThread:
    def __init__(self, *_: object, **__: object) -> None:
        """Nothing is needed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return iter([work(each) for each in items])


def on_one_thread(put: Callable[[object, str, object], None]) -> None:
    """Do one after the other what the product does side by side, so that a seed is a run; ``put`` is a ``setattr``."""
    for module in (trees, checkpoint_reader, copying):
        put(module, "ThreadPoolExecutor", OneThread)
    put(os, "fsync", bool)  # no power fails here


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    on_one_thread(monkeypatch.setattr)


UNSEEN = ("_list", "_read", "_copy", "_make")
"""How the names of calls end that change nothing in a tree of a replica: files are copied beside it first."""


class Stepping:
    """A store without deadlines; something may happen before each call, and the process may die before or after it."""

    def __init__(self, root: Path, happens: Callable[[bool], object]) -> None:
        """``happens`` is called before each call and after it, and told whether something was changed."""
        self._files: Files = LocalFiles(root)
        self._happens = happens
        self.uri = self._files.uri

    def call(self, name: str, operation: Callable[[Files], T], timeout: float) -> T:
        del timeout
        self._happens(False)
        try:
            return operation(self._files)
        finally:
            self._happens(not name.endswith(UNSEEN))

    def at(self, path: str) -> str:
        return f"{self.uri}/{path}".rstrip("/")

    def outcome(self, name: str, operation: Callable[[Files], T], timeout: float) -> Outcome[T]:
        try:
            return Outcome(self.call(name, operation, timeout), None, 0.0, 0.0)
        except StoreError as error:
            return Outcome(None, error, 0.0, 0.0)


class Beside:
    def __init__(self, root: Path, kind: str, random: Random) -> None:
        self.kind, self.random = kind, random
        self.source, self.root = root / "source", root / "replicas"
        self.source.mkdir()
        self.spark = SimulatedSpark(kind, random)
        self.run = self.spark.run()
        self.lines: list[dict[str, set[bytes]]] = [{}]
        """The contents that each path has ever had, in each line of batches."""
        self.kill_at: int | None = None
        self.steps_between = 0
        self.leap = 0
        self.checked = self.deaths = self.rounds = self.lost = self.moved = 0
        self._inside = False
        job_tree.create(LocalFiles(self.root), JOB)
        leader = job_tree.find(LocalFiles(self.root), JOB)
        self._quiet = Stepping(self.root, bool)
        self.directory = FencedDirectory(self._bounded(self._quiet), JOB, leader, 1.0)
        self.newest: tuple[int, int] = (-1, -1)

    @staticmethod
    def _bounded(stepping: Stepping) -> BoundedFiles:
        return cast("BoundedFiles", stepping)

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            before = dict(self.spark.files)
            next(self.run)
            self._sync(before)

    def rewind(self) -> None:
        """Put the query back to an older batch, as `ha job restart --from` does: another directory has its name."""
        saved = dict(self.saved)
        self.spark = SimulatedSpark(self.kind, self.random, files=saved, line=len(self.lines))
        self.spark.lineages = dict(self.saved_lineages)
        self.run = self.spark.run()
        shutil.rmtree(self.source)
        self.source.mkdir()
        self.lines.append({})
        self._sync({})

    def save(self) -> None:
        self.saved, self.saved_lineages = dict(self.spark.files), dict(self.spark.lineages)

    def _sync(self, before: dict[str, bytes]) -> None:
        for path in before.keys() - self.spark.files.keys():
            (self.source / path).unlink()
        for path, data in self.spark.files.items():
            if before.get(path) is not data:
                (self.source / path).parent.mkdir(parents=True, exist_ok=True)
                (self.source / path).write_bytes(data)
                self.lines[-1].setdefault(path, set()).add(data)

    def round(self, replica: Replica | None, kill_at: int | None, steps_between: int) -> Replica | None:
        self.kill_at, self.steps_between = kill_at, steps_between
        stepping = self._bounded(Stepping(self.root, self._happens))
        directory = FencedDirectory(stepping, JOB, self.directory.leader, 1.0)
        replica = replica or Replica(stepping, directory, QUERY, RETAINED)
        reader = CheckpointReader(Tree(self._bounded(Stepping(self.source, self._happens)), ""))
        try:
            names = reader.files()
            for closure in reader.closures(names, names.batches[-1:]):
                if closure.restorable:
                    self.moved += replica.move(reader, closure, bool).files
                    self.rounds += 1
        except (NotFound, Conflict, Unknown):
            self.lost += 1  # a new round begins
        except Killed:
            self.deaths += 1
            return None
        finally:
            self.kill_at = None
            self.steps_between = 0
        return replica

    def _happens(self, changed: bool) -> None:
        if self._inside:
            return
        self._inside = True
        try:
            if self.steps_between:
                self.step(self.random.randrange(self.steps_between + 1))
            if changed:
                self.step(self.leap)
                self.leap = 0
                self.check()
            if self.kill_at is not None:
                self.kill_at -= 1
                if self.kill_at < 0:
                    raise Killed
        finally:
            self._inside = False

    def check(self) -> None:
        """The replica is promotable to a closure that was true at the source, and no older than it ever was."""
        found = promotable(self._bounded(self._quiet), self.directory, QUERY)
        self.checked += 1
        if found is None:
            assert self.newest == (-1, -1), "it was promotable before"
            return
        path, closure = found
        home = self.root / self.directory.at(path)
        lines = self._lines_of(home, closure.batch)
        said = {each: (home / each).read_bytes() for each in closure.files}
        # A batch from before a query was put back is of both lines; what Spark had deleted by then only of the first.
        wrong = [[each for each, data in said.items() if data not in self.lines[n].get(each, ())] for n in lines]
        assert not all(wrong), f"{wrong[-1][0]} was never so"
        assert (lines[-1], closure.batch) >= self.newest, "it has gone back"
        self.newest = (lines[-1], closure.batch)

    def _lines_of(self, home: Path, batch: int) -> list[int]:
        data = (home / f"commits/{batch}").read_bytes() + (home / f"offsets/{batch}").read_bytes()
        lines = [
            number
            for number, line in enumerate(self.lines)
            if any(
                commit + offsets == data
                for commit in line.get(f"commits/{batch}", ())
                for offsets in line.get(f"offsets/{batch}", ())
            )
        ]
        assert lines, "such a batch never was"
        return lines

    def present(self) -> set[str]:
        home = self.root / self.directory.at(f"spark/{QUERY}")
        return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}

    def names(self) -> CheckpointFiles:
        return CheckpointFiles(Tree(self._bounded(self._quiet), self.directory.at(f"spark/{QUERY}")).listing())
