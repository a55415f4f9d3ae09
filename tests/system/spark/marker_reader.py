"""A reader that trusts markers beside an output with a partition commit.

It is that of :mod:`tests.system.spark.plain_reader` with one more promise: a partition with a marker has all its rows,
and none comes while the marker stands.

Batch N has the watermark and the time that its offsets say. Day K begins at K, in thousands of seconds, and is due when
the watermark has come to its end. Batches have rows of days that are open, and of days that are over.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from pyspark.sql import DataFrame

from ha.leadership.leadership import Leadership
from ha.outputs.partition_commit import PARTITION_TIME, CommittedPartition, PartitionCommit
from ha.spark import Output
from store.errors import ConnectionLost
from tests.system.spark.faulty_store import ROOT, FaultyStore
from tests.system.spark.plain_reader import JOB, OUT, STEP_S, Home, Reader, Run, SimulatedBatch

MARKER = "_SUCCESS"


def begins(values: Any) -> datetime:
    return datetime.fromtimestamp(int(values["day"]) * STEP_S, UTC)


@dataclass
class MarkerReader(Reader):
    all_due: bool = False
    """Whether the input has ended."""
    days: dict[str, set[str]] = field(default_factory=dict)
    """Of each partition with a marker its files, at the last poll."""
    seen: dict[str, set[str]] = field(default_factory=dict)
    """Of each partition that ever had a marker its files, when that stood last."""
    due: Callable[[str, int], bool] = lambda *_: True

    def poll(self) -> None:
        super().poll()
        assert self.store is not None
        nodes = self.store.tree.nodes
        days: dict[str, set[str]] = {}
        for path in nodes:
            if path.startswith(f"{OUT}/") and path.endswith(f"/{MARKER}"):
                day = path.removeprefix(f"{OUT}/").removesuffix(f"/{MARKER}")
                days[day] = {each for each in nodes if each.startswith(f"{OUT}/{day}/batch=") and nodes[each]}
        for day, files in days.items():
            if day in self.days and self.days[day] != files:
                self.wrong.append(f"{day} has a marker, and other rows than before: {self.days[day] ^ files}")
            elif day not in self.days and self.seen.get(day) != files:  # or a NameNode has forgotten that it went
                self._appeared(day, files)
        self.days = days
        self.seen |= days

    def _appeared(self, day: str, files: set[str]) -> None:
        assert self.store is not None
        if not files:
            self.wrong.append(f"{day} has a marker and no rows")
        nodes = self.store.tree.nodes
        if coming := [each for each in nodes if each.startswith(f"{JOB}/") and re.search(rf"/ready/.*/{day}/", each)]:
            self.wrong.append(f"{day} has a marker before {coming}")
        if not self.due(day, newest_done(nodes)) and not self.all_due and day not in self.seen:
            self.wrong.append(f"{day} has a marker too early, after batch {newest_done(nodes)}")

    def check_marked(self, newest: int | None) -> None:
        assert self.store is not None
        nodes = self.store.tree.nodes
        days = {each.split("/")[2] for each in nodes if each.startswith(f"{OUT}/day=") and nodes[each]}
        missing = {day for day in days - self.days.keys() if newest is None or self.due(day, newest)}
        if missing:
            self.wrong.append(f"{sorted(missing)} have no marker after batch {newest}")


def newest_done(nodes: dict[str, bytes | None]) -> int:
    return max((int(found[1]) for each in nodes if (found := re.search(r"/done/\d+/(\d+)$", each))), default=-1)


class MarkerRun(Run):
    def __init__(self, seed: int, *, trigger: str = PARTITION_TIME, rate: float = 0.15, batches: int = 7) -> None:
        super().__init__(seed, batches=batches, rate=rate)
        self.reader = self.marks = MarkerReader()
        self.store = FaultyStore(self.choose, rate, self.marks.poll)
        self.marks.store = self.store
        self.marks.due = self._due
        self.trigger, self.partitioned = trigger, True
        self.called: list[CommittedPartition] = []
        self.late = 0

    def commit(self) -> PartitionCommit:
        """As the program says it; its own policy comes last, so that the marker is out when it fails."""
        return PartitionCommit(trigger=self.trigger, delay=STEP_S, policy=["success-file", self._called], time=begins)

    def _due(self, day: str, newest: int) -> bool:
        number = int(day.removeprefix("day="))
        return self.trigger != PARTITION_TIME or newest >= number + 1

    def _called(self, partition: CommittedPartition) -> None:
        if self.choose.random() < self.store.rate:
            raise ConnectionLost("The receiver is away.")
        nodes = self.store.tree.nodes
        there = {int(found[1]) for each in nodes
                 if nodes[each] and (found := re.match(rf"{OUT}/{partition.path}/batch=(\d+)/", each))}  # fmt: skip
        if there != set(partition.batches):
            self.reader.wrong.append(f"{partition} is told, and has batches {there}")
        self.called.append(partition)

    def _open(self, home: Home) -> Any:
        run = self

        class Told(Output):
            def write(self, batch: DataFrame, batch_id: int, dead: DataFrame | None = None) -> bool:
                published = super().write(batch, batch_id, dead)
                run.marks.poll()
                if run.trigger == PARTITION_TIME:
                    run.marks.check_marked(batch_id)
                if batch_id == run.batches - 1:
                    run.marks.all_due = True
                    self.commit_pending()
                    run.marks.poll()
                    run.marks.check_marked(None)
                return published

        return Told(cast("Leadership", home), f"file://{ROOT}/{OUT}", partition_by=["day"], commit=self.commit())

    def _batch(self, batch: int) -> SimulatedBatch:
        self.tries += 1
        days = self.choose.sample(range(max(0, batch - 3), batch + 2), self.choose.randint(1, 2))
        rows = {f"day={day}": {"part-00000": f"batch {batch} try {self.tries} day {day} end".encode()} for day in days}
        for files in rows.values():
            for content in files.values():
                self.reader.tries[content.decode()] = (batch, self.tries, len(rows))
        return SimulatedBatch(self.store, rows, self._planned(batch))


def drawn(seed: int, **arguments: Any) -> MarkerRun:
    return cast("MarkerRun", MarkerRun(seed, **arguments).go())
