"""Holes in checkpoints of a led Spark, and looks at one that lives: what verification has to find, and what not."""

import zlib
from collections.abc import Callable, Iterable
from random import Random

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Asking, Closure
from ha.checkpoints.state_versions import closure, start
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import Condition, Verified, verify, verify_contents
from store.bounded import BoundedFiles
from store.errors import NotFound
from store.files import Files
from tests.unit.ha.checkpoints.led_spark import LedSpark, Life, life
from tests.unit.ha.checkpoints.simulated_spark import FORMATS
from tests.unit.ha.checkpoints.sweeping import answered, result_of

STEPS = 250
NAMED = (Condition.DAMAGED, Condition.REPAIRED)


class MemoryTree(Tree):
    """Files in memory, each with the sums that Spark or the store keeps of it."""

    def __init__(self, files: dict[str, bytes], sums: dict[str, int]) -> None:
        super().__init__(BoundedFiles(_no_driver))
        self._memory, self._sums = files, sums

    def read_through(self, path: str, size: int, told: Callable[[bytes], object]) -> None:
        del size
        data = self._memory.get(path)
        if data is None:
            raise NotFound(path)
        told(data if zlib.crc32(data) == self._sums.get(path, zlib.crc32(data)) else b"")


def _no_driver() -> Files:
    raise AssertionError


class LiveReader(CheckpointReader):
    def __init__(self, query: Life, random: Random | None, sums: dict[str, int] | None = None) -> None:
        """If ``random`` is None, Spark stands still; ``sums`` are those of undamaged files."""
        super().__init__(MemoryTree(query.spark.files, sums or {}))
        self._query, self._random = query, random

    def files(self) -> CheckpointFiles:
        there = self._query.spark.files
        folders = sorted({path.rpartition("/")[0] for path in there})
        found: dict[str, int] = {}
        for folder in folders:
            self._go_on()
            found |= {path: len(data) for path, data in there.items() if path.rpartition("/")[0] == folder}
        return CheckpointFiles(found)

    def closures(self, files: CheckpointFiles, batches: Iterable[int], *, begun: bool = False) -> list[Closure]:
        return [self._answered(closure(files, batch, begun=begun)) for batch in batches]

    def start(self, files: CheckpointFiles) -> Closure:
        return self._answered(start(files))

    def _answered(self, asking: Asking) -> Closure:
        return result_of(answered(self._query.spark.files, asking), self._go_on)

    def _go_on(self) -> None:
        for _ in range(self._random.randrange(3) if self._random is not None else 0):
            self._query.step()


def alarms(seed: int) -> list[Verified]:
    """Verify a checkpoint while its Spark writes, dies and is followed; return what is called damaged."""
    random = Random(seed)  # noqa: S311
    query = life(FORMATS[seed % len(FORMATS)], seed)
    for _ in range(random.randrange(1, STEPS)):
        query.step()

    def pause(_: float) -> None:
        for _ in range(random.randrange(1, 60)):
            query.step()

    found, _ = verify(lambda: LiveReader(query, random), pause)
    return [each for each in found if each.condition is Condition.DAMAGED]


def hole(seed: int, *, by_content: bool) -> tuple[str, bool]:
    """Make one hole that keeps Spark from a retained batch, and say which, and whether verification finds it.

    The oldest batch does not count: what only that needs is what Spark deletes next.
    """
    random = Random(seed)  # noqa: S311
    query = life(FORMATS[seed % len(FORMATS)], seed)
    spark = query.spark
    while True:
        for _ in range(random.randrange(STEPS // 2, STEPS)):
            query.step()
        later = CheckpointFiles(spark.sizes()).batches[1:]
        well = [batch for batch in later if spark.asked(batch) <= spark.files.keys()]
        if well:
            path = random.choice(sorted(spark.asked(random.choice(well))))
            before = dict(spark.files)
            if by_content:
                return path, _found_by_content(query, path, well, random)
            del spark.files[path]
            if _keeps_from(spark, well):
                return path, _found(query, well)
            spark.files.clear()
            spark.files.update(before)  # Spark has another way: that is no hole


def _keeps_from(spark: LedSpark, well: list[int]) -> bool:
    retained = set(CheckpointFiles(spark.sizes()).batches)
    return any(batch in retained and not spark.asked(batch) <= spark.files.keys() for batch in well)


def _found(query: Life, well: list[int]) -> bool:
    spark = query.spark
    found, _ = verify(lambda: LiveReader(query, None), lambda _: None)
    damaged = {each.batch for each in found if each.condition in NAMED}
    lost = {each for each in well if f"commits/{each}" in spark.files and not spark.asked(each) <= spark.files.keys()}
    return lost <= damaged


def _found_by_content(query: Life, path: str, well: list[int], random: Random) -> bool:
    """Change one bit; names and lengths stay. The store, or Spark, has kept a sum."""
    spark = query.spark
    users = {batch for batch in well if path in spark.asked(batch)}
    data = spark.files[path]
    at = random.randrange(len(data))
    sums = {path: zlib.crc32(data)}
    spark.files[path] = bytes([*data[:at], data[at] ^ 1 << random.randrange(8), *data[at + 1 :]])

    def reader() -> LiveReader:
        return LiveReader(query, None, sums)

    found, _ = verify(reader, lambda _: None)
    found, _ = verify_contents(reader, found, None, lambda _: None)
    return users <= {each.batch for each in found if each.condition in NAMED}
