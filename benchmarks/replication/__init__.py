"""Benchmark of replication: what would be lost, what is moved, what the job pays, and how soon it goes on elsewhere.

One stateful query runs a batch a second, its checkpoint in real HDFS. In turns, nothing else happens; ``ha replicate``
moves each batch to another root; or a program copies the whole checkpoint, again and again. Both have the lowest
priority, as beside a sidecar. In the end the query ends with its session alive, the replica is promoted by the command,
and a second session that was started before goes on from it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha
from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.replication.measures import losses, newly_referenced, percentile
from benchmarks.result import Picture, Result, Target
from ha.checkpoints.reading import CheckpointReader
from ha.checkpoints.trees import Tree
from ha.config.sources import load
from ha.config.stores import Stores
from ha.sandbox.polling import until
from ha.sidecar.background import in_background
from ha.sidecar.spark_overlay import CLOSING
from ha.spark import checkpoint_location
from ha.spark.state_defaults import DEFAULTS

NAME = "replication"
TITLE = "Replication of a query that runs a batch a second"

JOB, QUERY = "replicated", "counts"
WITHOUT, WITH, COPY = "nothing", "ha replicate", "a full copy each round"
KINDS = (WITHOUT, WITH, COPY)
ROUNDS, TURN_S, QUICK_TURN_S = 5, 25.0, 6.0
WARM_BATCHES, PATIENCE = 10, 240.0
TRIGGER_S = 1.0

LOSS, RATIO, SLOWDOWN, RTO = TRIGGER_S + 2.0, 1.02, 2.0, 5.0

SPARK = {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.minBatchesToRetain": "100000",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    **DEFAULTS,
    **CLOSING,
}
"""As by `ha run`. All batches are retained, so that what was newly referenced can be computed afterwards."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: its begin and end in seconds since 1970, and what its program has said."""

    kind: str
    begin: float
    end: float
    said: list[dict[str, Any]]


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        SandboxError: the servers did not start.
        TimeoutError: something makes no progress.
    """
    turns = []
    with servers(context) as sandbox:
        here = sandbox.environment()["HA_FILES"]
        there = f"{here.rsplit('/', 1)[0]}/other"
        with _session(context) as spark:
            with ha.lead(JOB, timeout=PATIENCE, files=here, zookeeper="") as leadership:
                place = checkpoint_location(leadership, QUERY)
                query = _started(spark, place)
                _until_batch(query, WARM_BATCHES)
                for number in range(context.repeats(ROUNDS, 1)):
                    first = number % len(KINDS)
                    for kind in (*KINDS[first:], *KINDS[:first]):
                        context.say(f"Round {number + 1}: {kind}")
                        command = _command(kind, here, there, place)
                        turns.append(_turn(kind, command, context, query))
                query.stop()
                committed, durations = _progress(query)
                closures = _closures(place)
            context.say("The replica is promoted")
            rto, promoted = _rto(spark, here, there)
    return _result(turns, committed, durations, closures, (rto, promoted))


def _command(kind: str, here: str, there: str, place: str) -> list[str]:
    if kind == WITH:
        options = ["--to", there, "--files", here, "--zookeeper", "", "--json", "--interval", "0.5"]
        return [sys.executable, "-m", "ha.cli", "replicate", JOB, *options]
    if kind == COPY:
        return [sys.executable, "-m", "benchmarks.replication.full_copy", place, f"{there}-copies/copy"]
    return []


def _turn(kind: str, command: Sequence[str], context: Context, query: StreamingQuery) -> Turn:
    """Let the query run for a while, beside a program if there is one, which has begun to move batches."""
    log = context.folder / f"said-{time.monotonic_ns()}.jsonl"
    with log.open("wb") as out, _beside(command, out):
        if command:
            until(lambda: None if _moved(log) else "nothing was moved", PATIENCE, f"{kind} does nothing")
        newest = _newest(query)
        _until_batch(query, newest + 1)
        begin = time.time()
        time.sleep(QUICK_TURN_S if context.quick else TURN_S)
        end = time.time()
    return Turn(kind, begin, end, _moved(log))


@contextmanager
def _beside(command: Sequence[str], out: Any) -> Iterator[None]:
    if not command:
        yield
        return
    with subprocess.Popen(command, stdout=out, stderr=sys.stderr, preexec_fn=in_background) as program:  # noqa: PLW1509
        try:
            yield
        finally:
            program.terminate()


def _moved(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return [each for each in map(json.loads, lines) if each.get("files") and not each.get("problem")]


@contextmanager
def _session(context: Context) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    warehouse = {"spark.sql.warehouse.dir": str(context.folder / "warehouse")}
    spark = SparkSession.builder.master("local[1]").config(map={**SPARK, **warehouse}).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _started(spark: SparkSession, place: str) -> StreamingQuery:
    counts = spark.readStream.format("rate").load().selectExpr("value % 1000 AS key").groupBy("key").count()
    writer = counts.writeStream.queryName(QUERY).outputMode("update").option("checkpointLocation", place)
    return writer.trigger(processingTime=f"{TRIGGER_S:g} seconds").format("noop").start()


def _newest(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return progress.batchId if progress is not None else -1


def _until_batch(query: StreamingQuery, batch: int) -> None:
    until(lambda: None if _newest(query) >= batch else "it is not there", PATIENCE, f"Batch {batch} does not come")


def _progress(query: StreamingQuery) -> tuple[dict[int, float], dict[int, float]]:
    """Return when each batch was committed, and how many milliseconds it took."""
    began = {each.batchId: datetime.fromisoformat(each.timestamp).timestamp() for each in query.recentProgress}
    took = {each.batchId: float(each.durationMs["triggerExecution"]) for each in query.recentProgress}
    return {batch: at + took[batch] / 1e3 for batch, at in began.items()}, took


def _closures(place: str) -> dict[int, dict[str, int]]:
    stores = Stores(load({"zookeeper": "", "history": "", "snapshots": "off"}))
    with stores.open(place, workers=16) as files:
        reader = CheckpointReader(Tree(files))
        names = reader.files()
        return {each.batch: dict(each.files) for each in reader.closures(names, names.batches)}


def _rto(spark: SparkSession, here: str, there: str) -> tuple[float, float]:
    """Return the seconds from the decision to promote to the first batch there, and to the end of the promotion."""
    began = time.monotonic()
    command = [sys.executable, "-m", "ha.cli", "promote", JOB, "--files", there, "--zookeeper", "", "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    promoted = time.monotonic() - began
    with ha.lead(JOB, timeout=PATIENCE, files=there, zookeeper="") as leadership:
        query = _started(spark, checkpoint_location(leadership, QUERY))
        while query.lastProgress is None:
            if time.monotonic() - began > PATIENCE:
                raise TimeoutError(f"There is no batch at {there}, which is a replica of {here}.")
            time.sleep(0.02)
        rto = time.monotonic() - began
        query.stop()
    return rto, promoted


def _result(
    turns: Sequence[Turn],
    committed: dict[int, float],
    durations: dict[int, float],
    closures: dict[int, dict[str, int]],
    ends: tuple[float, float],
) -> Result:
    rows, lost, moved = [], {}, {}
    for kind in KINDS:
        mine = [each for each in turns if each.kind == kind]
        said = [each for turn in mine for each in turn.said]
        took = [median(_took(turn, committed, durations)) for turn in mine]
        lost[kind] = [
            each
            for turn in mine
            for each in losses(committed, [(row["at"], row["batch"]) for row in turn.said], turn.begin, turn.end)
        ]
        needed = newly_referenced(closures, [each["batch"] for each in said])
        moved[kind] = sum(each["bytes"] for each in said) / needed if needed else 0.0
        rows.append((kind, median(took), percentile(lost[kind], 0.5), percentile(lost[kind], 0.99), moved[kind]))
    ratios = _ratios(turns, committed, durations)
    slowdown = (median(ratios) - 1) * 100
    title = "Duration of a batch, median of each turn"
    series = {
        kind: [median(_took(turn, committed, durations)) for turn in turns if turn.kind == kind] for kind in KINDS
    }
    return Result(
        NAME,
        TITLE,
        ("beside the query", "batch p50 (ms)", "would be lost p50 (s)", "p99 (s)", "bytes moved ÷ newly referenced"),
        tuple(rows),
        (
            Target("RPO p99: the trigger and 2 s", LOSS, percentile(lost[WITH], 0.99), "s", at_most=True),
            Target("Bytes moved ÷ bytes newly referenced", RATIO, moved[WITH], "", at_most=True),
            Target("A batch is slower by", SLOWDOWN, slowdown, "%", at_most=True),
            Target("RTO: from the decision to the first batch there", RTO, ends[0], "s", at_most=True),
        ),
        (
            "Source and target are two roots of one NameNode; all programs share the cores with servers and driver.",
            "What would be lost: the age of the newest batch that is complete at the other side, at each moment.",
            (
                f"A batch with replication takes {median(ratios):.3f} times as long as one without: the median of the "
                f"rounds, which are from {min(ratios):.3f} to {max(ratios):.3f}."
            ),
            f"RTO: of {ends[0]:.1f} s, `ha promote` took {ends[1]:.1f} s. The Spark session there runs already.",
        ),
        (Picture("batches", title, dots(title, "ms", series)),),
        {"turns": [asdict(each) for each in turns], "durations": durations, "committed": committed, "ends": ends},
    )


def _took(turn: Turn, committed: dict[int, float], durations: dict[int, float]) -> list[float]:
    found = [durations[batch] for batch, at in committed.items() if turn.begin < at < turn.end]
    if not found:
        raise TimeoutError("No batch was completed in a turn.")
    return found


def _ratios(turns: Sequence[Turn], committed: dict[int, float], durations: dict[int, float]) -> list[float]:
    """Return, for each round, how many times as long a batch takes with replication."""
    medians = {kind: [median(_took(t, committed, durations)) for t in turns if t.kind == kind] for kind in KINDS}
    return [with_it / without for with_it, without in zip(medians[WITH], medians[WITHOUT], strict=True)]
