"""Benchmark of three sinks side by side: ``ha.spark.Output``, the format ``ha`` and Spark's own file sink.

Each sink takes the same batches of rows of 100 bytes, as Parquet on real HDFS, one after the other from a source that
makes them up. A query's first batches are left out: they start Python and compile code. Measured are

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
SIZES = (1_000, 200_000)
"""Rows of a batch: so few that only the fixed costs count, and so many that these hardly do."""

WARM, BATCHES, QUICK_BATCHES = 4, 12, 4
PATIENCE = 240.0
TICK = os.sysconf("SC_CLK_TCK")
WITHIN = 1.3


@dataclass(frozen=True, slots=True)
class Turn:
    """What one query has taken: milliseconds of each batch, then processor time and calls for each batch."""

    sink: str
    rows: int
    batch_ms: list[float]
    cpu_ms: float
    calls: float


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        SandboxError: the servers did not start.
    """
    rounds, batches = context.repeats(3, 1), QUICK_BATCHES if context.quick else BATCHES
    with servers(context) as sandbox:
        found = sandbox.environment()
        command = [sys.executable, "-m", "benchmarks.spark.outputs", str(rounds), str(batches)]
        environment = {**os.environ, **{name: found[name] for name in ("HA_FILES", "HA_SANDBOX_WEBHDFS")}}
        context.say(f"Spark runs {rounds} rounds with three sinks and {len(SIZES)} sizes of batches.")
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, cwd=Path.cwd())
    turns = [Turn(**each) for each in json.loads(ran.stdout.splitlines()[-1])]
    return _result(turns, rounds, batches)


def _result(turns: list[Turn], rounds: int, batches: int) -> Result:
    rows: list[tuple[str | float | int, ...]] = []
    for size in SIZES:
        for sink in SINKS:
            here = [each for each in turns if (each.sink, each.rows) == (sink, size)]
            batch = median(ms for each in here for ms in each.batch_ms)
            rows.append(
                (sink, size, round(batch), round(1000 * size / batch), round(median(each.cpu_ms for each in here)),
                 round(median(each.calls for each in here), 1))
            )  # fmt: skip
    large = {str(row[0]): row for row in rows if row[1] == SIZES[-1]}
    ratio = float(large[FORMAT][4]) / float(large[OUTPUT][4])
    goal = "processor time of a large batch by the format, against Output"
    target = Target(goal, WITHIN, ratio, "x", at_most=True)
    series = {
        f"{sink}, {size} rows": [ms for each in turns if (each.sink, each.rows) == (sink, size) for ms in each.batch_ms]
        for size in SIZES
        for sink in SINKS
    }
    return Result(
        name=NAME,
        title=TITLE,
        columns=(
            "sink",
            "rows a batch",
            "batch [ms], median",
            "rows a second",
            "processor [ms] a batch",
            "NameNode calls a batch",
        ),
        rows=tuple(rows),
        targets=(target,),
        notes=(
            f"{rounds} rounds. In each, a sink takes {batches} batches of each size, after {WARM} that do not count.",
            "Rows of 100 bytes that do not repeat, Parquet with snappy, no partitions, two tasks a batch.",
        ),
        pictures=(Picture("batch", "Duration of each batch", dots("Duration of a batch", "ms", series, log=True)),),
        raw={"turns": [asdict(each) for each in turns]},
    )


# --- the driver, in a process of its own


def main(rounds: int, batches: int) -> None:
    """Run all turns, and print them as one line of JSON."""
    root = os.environ["HA_FILES"]
    builder = SparkSession.builder.master("local[2]").appName(NAME)
    spark = builder.config(map={**SPARK, "spark.driver.memory": "1g"}).getOrCreate()
    turns = []
    with ha.lead(JOB, {}, timeout=30.0, files=root, zookeeper="") as leadership:
        register_format(spark, leadership)
        for number in range(rounds):
            for size in SIZES:
                for sink in SINKS:
                    target = f"{root}-out/{NAME}/{number}-{size}-{SINKS.index(sink)}"
                    turns.append(_turn(spark, leadership, sink, size, batches, target))
    print(json.dumps([asdict(each) for each in turns]), flush=True)  # noqa: T201  # read by the benchmark
    spark.stop()


def _turn(spark: SparkSession, leadership: Leadership, sink: str, size: int, batches: int, target: str) -> Turn:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", size).option("numPartitions", 2).load()
    lines = source.selectExpr("value", "substr(concat(sha2(string(value), 512), value), 1, 92) text")
    checkpoint = leadership.path(f"spark/{target.rpartition('/')[2]}")
    query = next(queries := _started(lines, leadership, sink, target, checkpoint))
    try:
        _await(query, WARM)
        first, cpu, calls = _done(query), _cpu_ms(), _calls()
        _await(query, first + batches)
        last, cpu, calls = _done(query), _cpu_ms() - cpu, _calls() - calls
        progress = [each for each in query.recentProgress if first < each["batchId"] <= last]
    finally:
        query.stop()
        next(queries, None)
    took = [float(each["durationMs"]["triggerExecution"]) for each in progress]
    return Turn(sink, size, took, cpu / (last - first), calls / (last - first))


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


def _cpu_ms() -> float:
    """Return the processor time of this process and all below it, with those that have ended and were waited for."""
    total = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(each) for each in fields[11:15])
    return 1000.0 * total / TICK


def _calls() -> int:
    return namenode(os.environ["HA_SANDBOX_WEBHDFS"]).total()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
