"""Benchmark of three sinks side by side: ``ha.spark.Output``, the format ``ha`` and Spark's own file sink.

Each sink takes the same batches of rows of 100 bytes, as Parquet on real HDFS, one after the other from a source that
makes them up: as 1, 10 and 100 files, and in a long row of small batches. Sinks take turns, and begin in turns. A
query's first batches are left out: they start Python and compile code. Measured are

- *batch*: its duration, as Spark reports it;
- *processor time*: of the driver's program with its JVM and all its Python workers, per batch;
- *calls*: of the NameNode, as it counts them itself. Spark's own calls for the checkpoint are among them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha
from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result, Target
from benchmarks.spark.publishing import SPARK
from benchmarks.thousand_jobs.counters import namenode
from ha.leadership.leadership import Leadership
from ha.sandbox.polling import until
from ha.sidecar.memory import descendants
from ha.spark import Output, register_format

NAME = "spark_outputs"
TITLE = "Three sinks side by side: Output, the format ha, Spark's file sink"

JOB = "outputs"
OUTPUT, FORMAT, SPARKS = "ha.spark.Output", "format(ha)", "Spark's file sink"
SINKS = (OUTPUT, FORMAT, SPARKS)
CASES = ((200_000, 1), (200_000, 10), (200_000, 100))
"""Rows and files of a batch."""

LONG, LONG_ROWS = 150, 100
"""Batches in a row, and their rows; a file each."""

END = 30
"""Batches at either end of that row which are compared."""

MORE = {"spark.driver.memory": "1g", "spark.sql.streaming.numRecentProgressUpdates": "1000"}

MANY_FILES = 100
"""Files of a batch that takes so long that a quarter of the batches has to do, after one that does not count."""

WARM, BATCHES, QUICK_BATCHES = 3, 8, 4
PATIENCE = 600.0
TICK = os.sysconf("SC_CLK_TCK")
WITHIN, LEAST, FLAT = 1.3, 0.95, 1.1


@dataclass(frozen=True, slots=True)
class Turn:
    """What one query has taken: milliseconds of each batch, then processor time and calls for each batch."""

    sink: str
    rows: int
    files: int
    batch_ms: list[float]
    cpu_ms: float
    calls: float


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        SandboxError: the servers did not start.
    """
    rounds, batches = context.repeats(2, 1), QUICK_BATCHES if context.quick else BATCHES
    long = QUICK_BATCHES if context.quick else LONG
    with servers(context) as sandbox:
        found = sandbox.environment()
        command = [sys.executable, "-m", "benchmarks.spark.outputs", str(rounds), str(batches), str(long)]
        environment = {**os.environ, **{name: found[name] for name in ("HA_FILES", "HA_SANDBOX_WEBHDFS")}}
        environment["PYSPARK_PYTHON"] = sys.executable  # tasks of the format need this package
        context.say(f"Spark runs {rounds} rounds with three sinks and {len(CASES)} kinds of batches.")
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, cwd=Path.cwd())
    turns = [Turn(**each) for each in json.loads(ran.stdout.splitlines()[-1])]
    return _result(turns, rounds, batches, long)


def _result(turns: list[Turn], rounds: int, batches: int, long: int) -> Result:
    rows: list[tuple[str | float | int, ...]] = []
    for size, files in CASES:
        for sink in SINKS:
            here = _of(turns, sink, size, files)
            batch = median(ms for each in here for ms in each.batch_ms)
            rows.append(
                (sink, files, round(batch), round(1000 * size / batch), round(median(each.cpu_ms for each in here)),
                 round(median(each.calls for each in here), 1))
            )  # fmt: skip
    series = {
        f"{sink}, {files} files": [ms for each in _of(turns, sink, size, files) for ms in each.batch_ms]
        for size, files in CASES
        for sink in SINKS
    }
    in_a_row = {sink: [ms for each in _of(turns, sink, LONG_ROWS, 1) for ms in each.batch_ms] for sink in SINKS}
    return Result(
        name=NAME,
        title=TITLE,
        columns=(
            "sink",
            "files a batch",
            "batch [ms], median",
            "rows a second",
            "processor [ms] a batch",
            "NameNode calls a batch",
        ),
        rows=tuple(rows),
        targets=_targets(turns, in_a_row),
        notes=(
            f"{rounds} rounds. In each, a sink takes {batches} batches, after {WARM} that do not count.",
            f"Batches of {CASES[0][0]:,} different rows of 100 bytes, Parquet with snappy, a task for each file.",
            f"Batches of {MANY_FILES} files: {batches // 4}, after one that does not count.",
            f"In a row: {long} batches of {LONG_ROWS} rows; compared are the medians of {END} at either end.",
            *(f"{sink}: {_growth(took):.2f} times as long at the end of the row." for sink, took in in_a_row.items()),
        ),
        pictures=(
            Picture("batch", "Duration of each batch", dots("Duration of a batch", "ms", series, log=True)),
            Picture("row", "Many batches in a row", dots("Duration of a batch in a row", "ms", in_a_row, log=True)),
        ),
        raw={"turns": [asdict(each) for each in turns]},
    )


def _of(turns: list[Turn], sink: str, rows: int, files: int) -> list[Turn]:
    return [each for each in turns if (each.sink, each.rows, each.files) == (sink, rows, files)]


def _targets(turns: list[Turn], in_a_row: dict[str, list[float]]) -> tuple[Target, ...]:
    found = []
    for rows, files in CASES:
        took = {
            sink: median(ms for each in _of(turns, sink, rows, files) for ms in each.batch_ms)
            for sink in (OUTPUT, SPARKS)
        }
        goal = f"throughput of Output with {files} files a batch, against Spark's file sink"
        found.append(Target(goal, LEAST, took[SPARKS] / took[OUTPUT], "x", at_most=False))
    spent = {
        sink: median(each.cpu_ms for each in _of(turns, sink, *CASES[0])) for sink in (OUTPUT, FORMAT)
    }  # with few files the rows count
    goal = "processor time of a batch by the format, against Output"
    found.append(Target(goal, WITHIN, spent[FORMAT] / spent[OUTPUT], "x", at_most=True))
    goal = "time of a batch of Output at the end of a long row, against its beginning"
    found.append(Target(goal, FLAT, _growth(in_a_row[OUTPUT]), "x", at_most=True))
    return tuple(found)


def _growth(took: list[float]) -> float:
    """Return how much longer batches at the end of a row take than those at its beginning."""
    return median(took[-END:]) / median(took[:END])


# --- the driver, in a process of its own


def main(rounds: int, batches: int, long: int) -> None:
    """Run all turns, and print them as one line of JSON."""
    root = os.environ["HA_FILES"]
    builder = SparkSession.builder.master("local[2]").appName(NAME)
    spark = builder.config(map={**SPARK, **MORE}).getOrCreate()
    turns = []
    with ha.lead(JOB, {}, timeout=30.0, files=root, zookeeper="") as leadership:
        register_format(spark, leadership)
        for number in range(rounds):
            order = SINKS[number % len(SINKS) :] + SINKS[: number % len(SINKS)]
            plan = [Turn(sink, *case, [], 0.0, 0.0) for case in CASES for sink in order]
            turns += [_turn(spark, leadership, each, batches, number) for each in plan]
        row = [Turn(sink, LONG_ROWS, 1, [], 0.0, 0.0) for sink in SINKS]
        turns += [_turn(spark, leadership, each, long, rounds) for each in row]
    print(json.dumps([asdict(each) for each in turns]), flush=True)  # noqa: T201  # read by the benchmark
    spark.stop()


def _turn(spark: SparkSession, leadership: Leadership, turn: Turn, batches: int, number: int) -> Turn:
    sink = turn.sink
    target = f"{os.environ['HA_FILES']}-out/{NAME}/{number}-{turn.rows}-{turn.files}-{SINKS.index(sink)}"
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", turn.rows)
    numbers = source.option("numPartitions", turn.files).load()
    lines = numbers.selectExpr("value", "substr(concat(sha2(string(value), 512), value), 1, 92) text")
    checkpoint = leadership.path(f"spark/{target.rpartition('/')[2]}")
    query = next(queries := _started(lines, leadership, sink, target, checkpoint))
    try:
        _await(query, 0 if turn.files >= MANY_FILES else WARM)
        first, before, calls = _done(query), _cpu_ms(), _calls()
        _await(query, first + (batches // 4 if turn.files >= MANY_FILES else batches))
        last, after, calls = _done(query), _cpu_ms(), _calls() - calls
        cpu = sum(spent - before.get(pid, 0.0) for pid, spent in after.items())  # without processes that have ended
        progress = [each for each in query.recentProgress if first < each["batchId"] <= last]
    finally:
        query.stop()
        next(queries, None)
    took = [float(each["durationMs"]["triggerExecution"]) for each in progress]
    return Turn(sink, turn.rows, turn.files, took, cpu / (last - first), calls / (last - first))


def _started(
    lines: DataFrame, leadership: Leadership, sink: str, target: str, checkpoint: str
) -> Iterator[StreamingQuery]:
    writer: Any = lines.writeStream.option("checkpointLocation", checkpoint)
    if sink == OUTPUT:
        with Output(leadership, target, source="parquet") as output:
            yield writer.foreachBatch(output).start()
    elif sink == FORMAT:
        yield writer.format("ha").option("path", target).start()
    else:
        yield writer.format("parquet").option("path", target).start()


def _await(query: StreamingQuery, batch: int) -> None:
    until(lambda: None if _done(query) >= batch else f"it has come to {_done(query)}", PATIENCE, f"batch {batch}")


def _done(query: StreamingQuery) -> int:
    if (error := query.exception()) is not None:
        raise error
    progress = query.lastProgress
    return int(progress["batchId"]) if progress else -1


def _cpu_ms() -> dict[int, float]:
    """Return the processor time of this process and of each below it, by process id, with what each has waited for."""
    found = {}
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        found[pid] = 1000.0 * sum(int(each) for each in fields[11:15]) / TICK
    return found


def _calls() -> int:
    return namenode(os.environ["HA_SANDBOX_WEBHDFS"]).total()


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:4]))
