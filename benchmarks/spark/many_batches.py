"""Benchmark of 10,000 batches in a row: what an output's bookkeeping costs as it gets long, and Spark's file sink's."""

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from time import perf_counter, time
from typing import Any

from pyspark.sql import SparkSession

import ha
from benchmarks.context import Context, servers
from benchmarks.drawing import curves
from benchmarks.programs import answer, measured
from benchmarks.result import Picture, Result, at_most
from benchmarks.spark.session import session
from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.outputs.record import Record
from store.open import driver_of

NAME = "spark_many_batches"
TITLE = "Ten thousand batches in a row: the bookkeeping of Output and of Spark's file sink"

BATCHES, QUICK_BATCHES = 10_000, 400
TURN = 100  # Batches that one of the two takes before the other one does
YOUNG_EVERY = 10  # Each so many batches, one more goes to an output that is new in this turn
COMPACTION = 10
"""Each so many batches, Spark's file sink writes all files of its log anew: ``fileSink.log.compactInterval``."""

LOG_S = 900.0
"""Longest time for the file sink's log: its batches get longer and longer. `Output` takes all batches in any case."""

WRITERS = 8
FLAT = 1.1


@dataclass(slots=True)
class Found:
    """Milliseconds of each batch: of the long output, of the young ones beside it, and of the file sink's log."""

    output: list[float] = field(default_factory=list)
    young: list[float] = field(default_factory=list)
    log: list[float] = field(default_factory=list)


def run(context: Context) -> Result:
    batches = QUICK_BATCHES if context.quick else BATCHES
    with servers(context) as sandbox:
        environment = {**os.environ, "HA_FILES": sandbox.environment()["HA_FILES"]}
        context.say(f"{batches} batches, in turns of {TURN}.")
        found = measured("benchmarks.spark.many_batches", {"batches": batches}, context.folder, environment)
    return summarise(Found(**found))


def summarise(found: Found) -> Result:
    compacting = found.log[COMPACTION - 1 :: COMPACTION]
    rows = (
        ("Output, after the rows are written", *_ends(found.output, median), max(found.output)),
        ("Output, a new one beside it", *_ends(found.young, median), max(found.young)),
        ("file sink's log, median", *_ends(found.log, median), max(found.log)),
        ("file sink's log, mean", *_ends(found.log, fmean), max(found.log)),
        ("file sink's log, batches that compact it", *_ends(compacting, median), max(compacting)),
    )
    (old, older), (young, later) = _ends(found.output, median), _ends(found.young, median)
    growth = older / later / (old / young)  # a new output also has a connection that is new
    series = {
        "Output": _steps(found.output, TURN),
        "Output, a new one": _steps(found.young, TURN // YOUNG_EVERY),
        "Spark's file sink": _steps(found.log, TURN),
        "Spark's file sink, when it compacts": _steps(compacting, TURN // COMPACTION),
    }
    title = "Bookkeeping of a batch, median of each hundred"
    return Result(
        columns=("", "first tenth [ms]", "last tenth [ms]", "slowest [ms]"),
        rows=tuple((name, *(round(each, 1) for each in figures)) for name, *figures in rows),
        targets=(at_most("growth of a batch of Output, against that of a new one beside it", FLAT, growth, "x"),),
        notes=(
            f"{len(found.output):,} batches of one file each, in turns of {TURN}; Spark's execution is not in them.",
            f"The file sink's log took {len(found.log):,} batches, and no turn after {LOG_S:.0f} s of them.",
            f"Each {YOUNG_EVERY}th batch, one more goes to an output that is new in its turn.",
            f"The file sink's log is compacted each {COMPACTION} batches, as Spark has it by default.",
        ),
        pictures=(Picture("batches", title, curves(title, "ms", series, 0, axis="batches", width=TURN)),),
        raw=asdict(found),
    )


def _end(values: Sequence[float]) -> Sequence[float]:
    return values[-max(1, len(values) // 10) :]


def _ends(values: Sequence[float], middle: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    return middle(values[: max(1, len(values) // 10)]), middle(_end(values))


def _steps(values: Sequence[float], width: int) -> list[float]:
    return [median(values[at : at + width]) for at in range(0, len(values), width)]


# --- the driver, in a process of its own


def main(batches: int) -> dict[str, list[float]]:
    root, found = os.environ["HA_FILES"], Found()
    spark = session("local[1]", {})
    add = _sink_log(spark, f"{root}-out/{NAME}/log")
    with (
        ha.lead(NAME, {}, timeout=30.0, files=root, zookeeper="") as leadership,
        ThreadPoolExecutor(WRITERS) as threads,
        _journal(leadership, f"{root}-out/{NAME}/old") as old,
    ):
        for first in range(0, batches, TURN):
            with _journal(leadership, f"{root}-out/{NAME}/young-{first}") as young:
                few = _staged(threads, young, TURN // YOUNG_EVERY)
                for number, attempt in enumerate(_staged(threads, old, TURN)):
                    found.output.append(_timed(_publish, old, attempt, first + number))
                    if number % YOUNG_EVERY == 0:
                        which = number // YOUNG_EVERY
                        found.young.append(_timed(_publish, young, few[which], which))
            if sum(found.log) < 1000 * LOG_S:
                found.log += [_timed(add, number) for number in range(first, first + TURN)]
    spark.stop()
    return asdict(found)


@contextmanager
def _journal(leadership: Leadership, target: str) -> Iterator[Journal]:
    journal = Journal(leadership, target, "rows")
    try:
        journal.settle()
        yield journal
    finally:
        journal.close()


def _publish(journal: Journal, attempt: str, number: int) -> None:
    journal.publish(attempt, Batch(number), Record({"": {f"part-00000-{attempt}-c000.snappy.parquet": 0}}))


def _staged(threads: ThreadPoolExecutor, journal: Journal, count: int) -> list[str]:
    """Write what Spark would write of some batches, ahead; the file is empty, because nobody reads it."""
    staged = driver_of(journal.staged)()

    def write(_: int) -> str:
        attempt = uuid.uuid4().hex
        staged.make_directory(attempt)
        staged.make_directory(f"{attempt}/{layout.ROWS}")
        staged.write(f"{attempt}/{layout.ROWS}/part-00000-{attempt}-c000.snappy.parquet", b"")
        return attempt

    try:
        return list(threads.map(write, range(count)))
    finally:
        staged.close()


def _sink_log(spark: SparkSession, path: str) -> Callable[[int], None]:
    """Return what Spark's file sink does for a batch of one file when its rows are written."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001  # Spark shows the log of its sink to nobody
    sinks, empty = gateway.jvm.org.apache.spark.sql.execution.streaming.sinks, gateway.jvm.scala.Option.empty()
    log = sinks.FileStreamSinkLog(1, spark._jsparkSession, f"{path}/_spark_metadata", empty)  # noqa: SLF001

    def add(number: int) -> None:
        file = f"{path}/part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        files = gateway.new_array(sinks.SinkFileStatus, 1)
        files[0] = sinks.SinkFileStatus(file, 100, False, int(time() * 1000), 1, 1 << 27, "add")
        before = log.getLatestBatchId()
        if (before.get() if before.isDefined() else -1) != number - 1 or not log.add(number, files):
            raise RuntimeError(f"The log of the file sink does not take batch {number}.")

    return add


def _timed(call: Callable[..., object], *arguments: object) -> float:
    begun = perf_counter()
    call(*arguments)
    return 1000 * (perf_counter() - begun)


if __name__ == "__main__":
    answer(main)
