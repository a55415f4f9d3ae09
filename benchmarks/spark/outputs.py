"""Benchmark of three sinks side by side: ``ha.spark.Output``, the format ``ha`` and Spark's own file sink."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha
from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.measuring import rotated
from benchmarks.programs import answer, measured
from benchmarks.result import Cell, Result, Target, at_least, at_most, table
from benchmarks.spark.session import await_batch, newest, session
from benchmarks.thousand_jobs.counters import counted
from benchmarks.versions import packages_of, with_packages
from ha.drill.kill import descendants
from ha.leadership.leadership import Leadership
from ha.spark import Output
from ha.spark.sink.data_source import register_format

NAME = "spark_outputs"
TITLE = "Three sinks side by side: Output, the format ha, Spark's file sink"

COMPARES = True  # with another commit

JOB = "outputs"
OUTPUT, FORMAT, SPARKS = "ha.spark.Output", "format(ha)", "Spark's file sink"
SINKS = (OUTPUT, FORMAT, SPARKS)
CASES = ((200_000, 1), (200_000, 10), (200_000, 100))  # Rows and files of a batch
MANY_FILES = 100
"""Files of a batch that takes so long that a quarter of the batches has to do, after one that does not count."""

WARM, BATCHES, QUICK_BATCHES = 3, 8, 4
TICK = os.sysconf("SC_CLK_TCK")
WITHIN, LEAST, LATER = 1.3, 0.95, 1.05


@dataclass(frozen=True, slots=True)
class Turn:
    """What one query has taken: milliseconds of each batch, then processor time and calls for each batch."""

    version: str  # commit whose packages it had; empty for the present ones
    sink: str
    rows: int
    files: int
    batch_ms: list[float]
    cpu_ms: float
    calls: float


def run(context: Context) -> Result:
    # Each sink is as often the first, the second and the last one of each kind of batches, and so is each commit.
    versions = ("", context.against) if context.against else ("",)
    rounds, batches = context.repeats(len(SINKS) * len(versions), 1), QUICK_BATCHES if context.quick else BATCHES
    with servers(context) as sandbox:
        found, turns = sandbox.environment(), []
        environment = {**os.environ, **{name: found[name] for name in ("HA_FILES", "HA_SANDBOX_WEBHDFS")}}
        environments = {"": environment}
        if context.against:
            packages = packages_of(context.against, context.folder)
            environments[context.against] = with_packages(packages, environment)
        for number, version in [(at, each) for at in range(rounds) for each in rotated(versions, at)]:
            context.say(f"Round {number + 1} of {rounds}, {version or 'this commit'}")
            told = {"version": version, "number": number, "first": number // len(versions), "batches": batches}
            ran = measured("benchmarks.spark.outputs", told, context.folder, environments[version])
            turns += [Turn(**each) for each in ran]
            (context.folder / f"{NAME}-turns.json").write_text(json.dumps([asdict(each) for each in turns]))
    return summarise(turns, rounds, batches)


def planned(first: int) -> list[tuple[str, tuple[int, int]]]:
    """Return the turns of a round, each a sink and the rows and files of its batches; it begins with another sink."""
    return [(sink, case) for at, case in enumerate(CASES) for sink in rotated(SINKS, first + at)]


def summarise(turns: list[Turn], rounds: int, batches: int) -> Result:
    versions = sorted({each.version for each in turns})
    cases = [(version, sink, *case) for case in CASES for sink in SINKS for version in versions]
    took = {case: [ms for each in _of(turns, *case) for ms in each.batch_ms] for case in cases}
    series = {
        f"{sink}, {files} files{f', {of}' if of else ''}": took[of, sink, rows, files]
        for of, sink, rows, files in cases
    }
    columns: dict[str, Callable[[tuple[str, str, int, int]], Cell]] = {
        "sink": lambda case: case[1],
        **({"commit": lambda case: case[0] or "this one"} if len(versions) > 1 else {}),
        "files a batch": lambda case: case[3],
        "batch [ms], median": lambda case: round(median(took[case])),
        "rows a second": lambda case: round(1000 * case[2] / median(took[case])),
        "processor [ms] a batch": lambda case: round(median(each.cpu_ms for each in _of(turns, *case))),
        "NameNode calls a batch": lambda case: round(median(each.calls for each in _of(turns, *case)), 1),
    }
    return Result(
        *table(columns, cases),
        targets=(*_targets(turns), *(each for version in versions if version for each in _no_dearer(turns, version))),
        notes=(
            f"{rounds} rounds. In each, a sink takes {batches} batches or more, after {WARM} that do not count.",
            f"A round is a driver of its own and begins with another sink, after {QUICK_BATCHES} batches of each.",
            f"Batches of {CASES[0][0]:,} different rows of 100 bytes, Parquet with snappy, a task for each file.",
            f"Batches of {MANY_FILES} files: {batches // 4}, after one that does not count.",
        ),
        pictures=(dotted("batch", "Duration of each batch", "ms", series, log=True),),
        raw={"turns": [asdict(each) for each in turns]},
    )


def _no_dearer(turns: list[Turn], version: str) -> Iterator[Target]:
    """Compare what a batch costs with what it did at another commit."""
    for sink in (OUTPUT, FORMAT):
        for rows, files in CASES:
            now, then = _of(turns, "", sink, rows, files), _of(turns, version, sink, rows, files)
            calls = median(each.calls for each in now) / median(each.calls for each in then)
            took = [median(ms for each in which for ms in each.batch_ms) for which in (now, then)]
            yield at_most(f"NameNode calls of a batch of {files} files by {sink}, against {version}", 1.0, calls, "x")
            goal = f"time of a batch of {files} files by {sink}, against {version}"
            yield at_most(goal, LATER, took[0] / took[1], "x")


def _of(turns: list[Turn], version: str, sink: str, rows: int, files: int) -> list[Turn]:
    return [each for each in turns if (each.version, each.sink, each.rows, each.files) == (version, sink, rows, files)]


def _targets(turns: list[Turn]) -> tuple[Target, ...]:
    found = []
    for rows, files in CASES:
        took = {
            sink: median(ms for each in _of(turns, "", sink, rows, files) for ms in each.batch_ms)
            for sink in (OUTPUT, SPARKS)
        }
        goal = f"throughput of Output with {files} files a batch, against Spark's file sink"
        found.append(at_least(goal, LEAST, took[SPARKS] / took[OUTPUT], "x"))
    few = CASES[0]  # the rows count
    spent = {sink: median(each.cpu_ms for each in _of(turns, "", sink, *few)) for sink in (OUTPUT, FORMAT)}
    goal = "processor time of a batch by the format, against Output"
    found.append(at_most(goal, WITHIN, spent[FORMAT] / spent[OUTPUT], "x"))
    return tuple(found)


# --- the driver, in a process of its own


def main(version: str, number: int, first: int, batches: int) -> list[dict[str, Any]]:
    root = os.environ["HA_FILES"]
    spark = session("local[2]", {"spark.driver.memory": "1g"})
    with ha.lead(f"{JOB}{version}", {}, timeout=30.0, files=root, zookeeper="") as leadership:
        register_format(spark, leadership)
        for sink in rotated(SINKS, first):  # the first one of a JVM would be the slowest
            _turn(spark, leadership, Turn(version, sink, *CASES[0], [], 0.0, 0.0), QUICK_BATCHES, f"{number}-warm")
        turns = [Turn(version, sink, *case, [], 0.0, 0.0) for sink, case in planned(first)]
        found = [_turn(spark, leadership, each, batches, f"{number}") for each in turns]
    spark.stop()
    return [asdict(each) for each in found]


def _turn(spark: SparkSession, leadership: Leadership, turn: Turn, batches: int, name: str) -> Turn:
    sink = turn.sink
    name = f"{name}-{turn.rows}-{turn.files}-{SINKS.index(sink)}"
    target = f"{os.environ['HA_FILES']}-out/{NAME}{turn.version}/{name}"
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", turn.rows)
    numbers = source.option("numPartitions", turn.files).load()
    lines = numbers.selectExpr("value", "substr(concat(sha2(string(value), 512), value), 1, 92) text")
    checkpoint = leadership.path(f"spark/{name}")
    query = next(queries := _started(lines, leadership, sink, target, checkpoint))
    try:
        await_batch(query, 0 if turn.files >= MANY_FILES else WARM)
        calls, first, before = _calls(), newest(query), _cpu_ms()
        await_batch(query, first + (batches // 4 if turn.files >= MANY_FILES else batches))
        calls, last, after = _calls() - calls, newest(query), _cpu_ms()
        cpu = sum(spent - before.get(pid, 0.0) for pid, spent in after.items())  # without processes that have ended
        progress = [each for each in query.recentProgress if first < each["batchId"] <= last]
    finally:
        query.stop()
        next(queries, None)
    took = [float(each["durationMs"]["triggerExecution"]) for each in progress]
    return replace(turn, batch_ms=took, cpu_ms=cpu / (last - first), calls=calls / (last - first))


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
    return counted(os.environ["HA_SANDBOX_WEBHDFS"])


if __name__ == "__main__":
    answer(main)
