"""Sweeps of a led Spark: step by step beside it, and what is asked for later is still there."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.closure import Closure, Contents, Wanted
from ha.checkpoints.state_versions import closure
from ha.checkpoints.sweeping import unreferenced
from tests.unit.ha.checkpoints.led_spark import LedSpark, Life, life

T = TypeVar("T")

STEPS = 300
"""Steps of one life: about six leaders, and a dozen batches."""


@dataclass
class Counted:
    lives: int = 0
    swept: int = 0
    asked: int = 0
    leaders: int = 0
    lost: list[str] = field(default_factory=list)


def answered(files: Mapping[str, bytes], asking: Generator[Wanted, Contents, T]) -> Generator[None, None, T]:
    """Run a computation of the product on files in memory; yields before each round of reads."""
    said: dict[str, bytes | None] = {}
    try:
        wanted = next(asking)
        while True:
            yield
            said |= {path: files.get(path) for path in wanted}
            wanted = asking.send(said)
    except StopIteration as end:
        result: T = end.value
        return result


def result_of(work: Generator[None, None, T], meanwhile: Callable[[], object] = bool) -> T:
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        meanwhile()


def sweep(spark: LedSpark, *, alone: bool = False) -> Generator[None, None, list[str]]:
    """Sweep as the product does; yields wherever Spark, or another leader, may do something."""
    before = inf if alone else spark.before_ms()
    listed = {path: len(data) for path, data in spark.files.items() if path.startswith("state/")}
    yield  # directories are listed one after the other
    listed |= {path: len(data) for path, data in spark.files.items() if not path.startswith("state/")}
    written = {path: spark.written_ms[path] for path in listed}
    names = CheckpointFiles(listed)
    closures: list[Closure] = []
    for batch in names.batches:
        held = yield from answered(spark.files, closure(names, batch))
        closures += [held]
    if closures and not closures[-1].restorable:
        return []  # the product refuses
    found = yield from answered(spark.files, unreferenced(names, closures, written, before))
    swept = []
    for path in found:
        yield
        if spark.files.pop(path, None) is not None:
            swept.append(path)
    return swept


def sweep_now(spark: LedSpark, *, alone: bool = False) -> list[str]:
    return result_of(sweep(spark, alone=alone))


def live(kind: str, seed: int, counted: Counted) -> Life:
    """One life with sweeps beside it. Whatever a restart or a reader asks for must not have been swept."""
    query = life(kind, seed)
    spark = query.spark
    gone: set[str] = set()
    sweeping: Generator[None, None, list[str]] | None = None
    files = spark.files
    for _ in range(STEPS):
        known = set(files)
        if query.step():
            counted.leaders += 1
            sweeping = None  # its path is gone with the leader directory
        if sweeping is None and query.random.random() < 0.03:
            sweeping = sweep(spark)
        for _ in range(query.random.randrange(8) if sweeping else 0):
            there = set(files)
            try:
                assert sweeping is not None
                next(sweeping)
            except StopIteration:
                sweeping = None
                break
            finally:
                gone |= there - files.keys()
                counted.swept += len(there - files.keys())
        if known - files.keys() - gone or query.random.random() < 0.1:  # Spark forgets, or somebody asks
            newest = spark.newest()
            if newest is not None:
                asked = spark.asked(newest)
                counted.asked += len(asked)
                counted.lost += sorted(asked & gone)
    counted.lost += sorted(spark.oracle() & gone)
    counted.lives += 1
    return query
