"""A reader of a regional output that trusts the mark: no row that it has not seen comes up to a mark that it has seen.

The store is that of :mod:`tests.system.spark.plain_reader`. Regions do their batches in a drawn order; each of them may
fail, be slow or have nothing to do, and a driver takes all of them along when it dies.
"""

import random
import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.spark import RegionalOutput
from leader.errors import RegionBehind
from store.errors import StoreError
from tests.system.spark.faulty_store import ROOT, FaultyStore
from tests.system.spark.plain_reader import JOB, OUT, Home, Run, SimulatedBatch

MOST_APART = 4


@dataclass
class RegionalReader:
    """Sees all files and the mark; ``wrong`` says what should not be."""

    store: FaultyStore | None = None
    files: dict[str, tuple[str, int, int, int]] = field(default_factory=dict)
    """Of each file's content: region, number of its batch, try, and number of files of that try."""
    complete: set[tuple[str, int]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    mark: int = -1
    """The highest that was seen."""
    seen: set[str] = field(default_factory=set)

    def poll(self) -> None:
        assert self.store is not None
        nodes = self.store.tree.nodes
        there = {path: content.decode() for path, content in nodes.items() if content and path.startswith(f"{OUT}/")}
        for path in there.keys() - self.seen:
            found = re.match(rf"{OUT}/region=(\w+)/(?:day=\d/)?batch=(\d+)/", path)
            if found is None or found[1] != self.files[there[path]][0]:
                self.wrong.append(f"{path} has rows of {there[path]}")
            elif int(found[2]) <= self.mark:
                self.wrong.append(f"{path} comes after the mark {self.mark}")
        self.seen |= there.keys()
        if len(set(there.values())) < len(there):
            self.wrong.append(f"rows are there twice: {sorted(there)}")
        tries: dict[tuple[str, int], set[int]] = {}
        for content in there.values():
            region, number, one, _ = self.files[content]
            tries.setdefault((region, number), set()).add(one)
        self.wrong += [f"{each} has rows of tries {of}" for each, of in tries.items() if len(of) > 1]
        names = [path.rpartition("/")[2] for path in nodes if re.search(rf"/{layout.MARK}\d+$", path)]
        self.mark = max(self.mark, layout.mark(names))

    def check_complete(self) -> None:
        """Look for every file of every batch that is said to be complete."""
        assert self.store is not None
        self.poll()
        there = [self.files[content.decode()] for path, content in self.store.tree.nodes.items()
                 if content and path.startswith(f"{OUT}/")]  # fmt: skip
        for region, number in self.complete:
            found = [each for each in there if each[:2] == (region, number)]
            if not found or len(found) != found[0][3]:
                self.wrong.append(f"batch {number} of {region} is complete, and {len(found)} of its files are there")


class Slow(SimulatedBatch):
    meanwhile: Callable[[], None]

    def save(self, uri: str) -> dict[str, dict[str, int]]:
        self.meanwhile()
        return super().save(uri)


class RegionalRun(Run):
    """One job with one regional output, its drivers one after the other, by a seed."""

    def __init__(self, seed: int, *, batches: int = 5, rate: float = 0.12) -> None:
        super().__init__(seed, batches=batches, rate=rate)
        self.regional = RegionalReader()
        self.store = FaultyStore(self.choose, rate, self.regional.poll)
        self.regional.store = self.store
        self.regions = [f"r{number}" for number in range(self.choose.randint(1, 4))]
        self.next = dict.fromkeys(self.regions, 0)
        self.stuck = self.choose.choice([*self.regions, ""])
        """This region does nothing for a while."""
        self.apart = 0

    def go(self, most_drivers: int = 300) -> "RegionalRun":
        self.store.tree.make_parents("out")
        self.store.tree.make_parents(JOB)
        home = self._lead(None)
        while min(self.next.values()) < self.batches:
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
                self._drive(output)
            except StoreError:
                pass
            finally:
                self._ended(*self.running)
                if output is not None:
                    output.close()
        self.store.rate, self.store.alive = 0.0, True
        with self._open(home) as last:
            for region in self.regions:  # nothing to do any more
                self._idle(last, region)
            assert last.complete_up_to == last._marks.front
        self.store.catch_up()
        self.regional.check_complete()
        return self

    def _open(self, home: Home) -> RegionalOutput:
        return RegionalOutput(
            cast("SparkSession", None),
            cast("Leadership", home),
            f"file://{ROOT}/{OUT}",
            self.regions,
            partition_by=["day"] if self.partitioned else [],
            max_region_lag=MOST_APART,
        )

    def _drive(self, output: RegionalOutput) -> None:
        """Do batches until a call fails that ends the driver, or all are done."""
        while left := [each for each in self.regions if self.next[each] < self.batches]:
            region = self.choose.choice(left)
            if region == self.stuck and len(left) > 1 and self.choose.random() < 0.8:
                continue
            if self.choose.random() < 0.3:
                self._idle(output, self.choose.choice(self.regions))
                continue
            if self.choose.random() < 0.1:
                with output._lock:
                    output._marks.fail(region, "poison")
                continue
            try:
                self._write(output, region)
            except StoreError:
                if not self.store.alive or self.choose.random() < 0.3:
                    raise
                # its query is started again, and the others have not noticed

    def _write(self, output: RegionalOutput, region: str, *others: str) -> None:
        """Do a batch of a region, while Spark writes it perhaps one of another."""
        number = self.next[region]
        beside = self.choose.choice(self.regions)
        busy = {region, *others}

        def meanwhile() -> None:
            if beside not in busy and self.next[beside] < self.batches:
                with suppress(StoreError):
                    self._write(output, beside, *busy)

        batch = self._rows(region, number)
        batch.meanwhile = meanwhile
        try:
            output.write(region, cast("DataFrame", batch), number)
        except StoreError:
            self._ended(region)
            raise
        except RegionBehind:
            self._ended(region)
            self.stuck = ""
            assert output._marks.apart >= MOST_APART
            return
        self.apart = max(self.apart, output._marks.apart)
        self.next[region] += 1
        self.regional.complete.add((region, number))
        self.regional.check_complete()

    def _idle(self, output: RegionalOutput, region: str) -> None:
        with output._lock:
            asked, front = output._marks.unknown(), output._marks.front
            if region in asked:
                output._marks.idle(region, asked[region], front)
        output._tell()

    def _rows(self, region: str, number: int) -> "Slow":
        self.tries += 1
        days = self.choose.sample(range(3), self.choose.randint(1, 2)) if self.partitioned else [0]
        rows = {f"day={day}" if self.partitioned else "": {"part-0": uuid.UUID(int=self.choose.getrandbits(128)).bytes}
                for day in days}  # fmt: skip
        rows = {day: {name: content.hex().encode() for name, content in files.items()} for day, files in rows.items()}
        for files in rows.values():
            for content in files.values():
                self.regional.files[content.decode()] = (region, number, self.tries, len(rows))
        return Slow(self.store, rows, self._planned(number, region))


def drawn(seed: int, **arguments: Any) -> RegionalRun:
    """Return a run that has come to its end; names are drawn, too, because messages have them."""
    names = random.Random(seed)  # noqa: S311  # a simulation
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=names.getrandbits(128)))
        return RegionalRun(seed, **arguments).go()
