"""Benchmark of a regional output: a hundred queries publish to one directory, and one of them is stuck.

Each region gets one small file in each round, and takes one file a batch. In the second round the batch of one region
hangs for a minute. The next rounds come as soon as all others have done theirs. All is on the local disk of one host,
with its two cores for all queries: so the time of a round says what a hundred batches of Spark cost, and nothing more.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import ha.spark
from benchmarks.context import Context
from benchmarks.result import Result, Target
from benchmarks.spark.publishing import SPARK
from ha.leadership.leadership import Leadership
from leader.errors import NotLeader

NAME = "spark_regional"
TITLE = "A hundred regions of one output, one of them stuck"

REGIONS, QUICK_REGIONS, ROUNDS = 100, 8, 4
STUCK_S, QUICK_STUCK_S = 60.0, 5.0
TRIGGER = "5 seconds"
PATIENCE = 900.0


def run(context: Context) -> Result:
    """Run the benchmark."""
    regions, stuck = (QUICK_REGIONS, QUICK_STUCK_S) if context.quick else (REGIONS, STUCK_S)
    context.say(f"Spark runs {regions} queries; one hangs for {stuck:g} s.")
    command = [sys.executable, "-m", "benchmarks.spark.regional", str(context.folder), str(regions), str(stuck)]
    ran = subprocess.run(command, env={**os.environ}, stdout=subprocess.PIPE, check=True, cwd=Path.cwd())
    found = json.loads(ran.stdout.splitlines()[-1])
    rows = [("regions", regions), ("rounds", ROUNDS), ("stuck for, s", stuck), ("opened, s", found["opened"]),
            *((f"round {number + 1}, s", each) for number, each in enumerate(found["rounds"])),
            ("batches that the others have lost", found["lost"]), ("rows missing or twice at the end", found["wrong"]),
            ("from the end of the hang to the mark at the end, s", found["caught_up"])]  # fmt: skip
    targets = (
        Target("batches that the other regions lose", 0, found["lost"], "batches", at_most=True),
        Target("rows missing or twice at the end", 0, found["wrong"], "rows", at_most=True),
    )
    notes = (
        "A round ends when each region but the stuck one has published its file.",
        "Lost: batches of those regions that were repeated, failed or not done at the end of the hang.",
    )
    return Result(NAME, TITLE, ("what", "measured"), tuple(rows), targets, notes, (), found)


class Regions:
    """The queries of one job, and what they have published."""

    def __init__(self, folder: Path, count: int, stuck_s: float) -> None:
        self.folder, self.names, self.stuck_s = folder, [f"r{number}" for number in range(count)], stuck_s
        self.output: ha.spark.RegionalOutput | None = None
        self.leadership: Leadership | None = None
        self.calls: Counter[tuple[str, int]] = Counter()
        self.published: set[tuple[str, int]] = set()
        self.began, self.ended = threading.Event(), threading.Event()
        self.opened = 0.0
        for name in self.names:
            (folder / "in" / name).mkdir(parents=True)

    def job(self) -> ha.spark.Job:
        """Declare a query for each region."""
        job = ha.spark.Job("regions", files=(self.folder / "jobs").as_uri(), zookeeper="")
        for name in self.names:
            self._declare(job, name)
        return job

    def _declare(self, job: ha.spark.Job, name: str) -> None:
        @job.query(name=name)
        def query(spark: SparkSession, leadership: Leadership) -> Any:
            if self.output is None:
                began = time.monotonic()
                target = (self.folder / "out").as_uri()
                self.output = ha.spark.RegionalOutput(spark, leadership, target, self.names, source="text")
                self.leadership, self.opened = leadership, time.monotonic() - began
            write = self.output[name]

            def batch(rows: DataFrame, number: int) -> None:
                self.calls[name, number] += 1
                if name == self.names[-1] and number == 1 and not self.began.is_set():
                    self.began.set()
                    time.sleep(self.stuck_s)
                    self.ended.set()
                write(rows, number)
                self.published.add((name, number))

            path = (self.folder / "in" / name).as_uri()
            lines = spark.readStream.option("maxFilesPerTrigger", 1).text(path).coalesce(1)
            return lines.writeStream.trigger(processingTime=TRIGGER).foreachBatch(batch)

    def feed(self, number: int) -> None:
        """Give each region a file."""
        for name in self.names:
            staged = self.folder / "in" / f"{name}-{number}"
            staged.write_text(f"{name} {number}\n")
            staged.rename(self.folder / "in" / name / f"{number}.txt")

    def rows(self) -> Counter[str]:
        """All that is published."""
        return Counter(line for path in (self.folder / "out").rglob("part-*") for line in path.read_text().splitlines())


def until(true: Callable[[], bool]) -> None:
    """Ask until it is so.

    Raises:
        TimeoutError: it took too long.
    """
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"Still not so after {PATIENCE:g} s.")
        time.sleep(0.1)


def measure(folder: Path, count: int, stuck_s: float) -> dict[str, Any]:
    """Run the queries, and return what was measured."""
    settings = {**SPARK, "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"}
    spark = SparkSession.builder.master("local[2]").config(map=dict(settings)).getOrCreate()
    regions = Regions(folder, count, stuck_s)
    job = regions.job()

    def work() -> None:
        with suppress(NotLeader):  # it has resigned
            job.run(spark, timeout=60.0)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    others, took = regions.names[:-1], []
    lost = -1
    for number in range(ROUNDS):
        began = time.monotonic()
        regions.feed(number)
        wanted = {(name, number) for name in (regions.names if number == 0 else others)}
        until(lambda wanted=wanted: wanted <= regions.published)  # type: ignore[misc]
        took.append(round(time.monotonic() - began, 1))
        mark = regions.output.complete_up_to if regions.output else None
        sys.stderr.write(f"Round {number}: {took[-1]} s, mark {mark}, hang over: {regions.ended.is_set()}.\n")
    until(regions.ended.is_set)
    again = sum(times - 1 for (name, _), times in regions.calls.items() if name != regions.names[-1])
    lost = again + sum((name, number) not in regions.published for name in others for number in range(ROUNDS))
    freed = time.monotonic()
    all_of_it = Counter(f"{name} {number}" for name in regions.names for number in range(ROUNDS))
    until(lambda: len(regions.published) == all_of_it.total())
    assert regions.output is not None
    assert regions.leadership is not None
    newest = max(int(path.name.partition("=")[2]) for path in (folder / "out").glob("region=*/batch=*"))
    output = regions.output
    until(lambda: output.complete_up_to == newest)
    caught_up = time.monotonic() - freed
    rows = regions.rows()
    wrong = sum(((rows - all_of_it) + (all_of_it - rows)).values())
    regions.leadership.resign()
    thread.join(PATIENCE)
    return {"opened": round(regions.opened, 1), "rounds": took, "lost": lost, "wrong": wrong,
            "caught_up": round(caught_up, 1), "mark": newest, "behind": len(output.behind)}  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as place:
        sys.stdout.write(f"{json.dumps(measure(Path(place), int(sys.argv[2]), float(sys.argv[3])))}\n")
