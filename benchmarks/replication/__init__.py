"""Benchmark of replication: what would be lost, what is moved, what the job pays, and how soon it goes on elsewhere."""

import json
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha
from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.measuring import turns as take_turns
from benchmarks.programs import ha as run_ha
from benchmarks.result import Result, at_most
from benchmarks.spark.session import await_batch, newest, session
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.trees import Tree
from ha.config.sources import load
from ha.config.stores import Stores
from ha.hosts.background import in_background
from ha.sandbox.polling import until
from ha.spark import checkpoint_location
from ha.spark.session.frozen import DEFAULTS

TITLE = "Replication of a query that runs a batch a second"

JOB, QUERY = "replicated", "counts"
WITHOUT, WITH, COPY = "nothing", "ha replica run", "a full copy each round"
KINDS = (WITHOUT, WITH, COPY)
ROUNDS, TURN_S, QUICK_TURN_S = 5, 25.0, 6.0
WARM_BATCHES, PATIENCE = 10, 240.0
TRIGGER_S = 1.0

LOSS, RATIO, SLOWDOWN, RTO = TRIGGER_S + 2.0, 1.02, 2.0, 5.0

SPARK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.minBatchesToRetain": "100000",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    **DEFAULTS,
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
    turns = []
    with servers(context) as sandbox:
        here = sandbox.environment()["HA_FILES"]
        there = f"{here.rsplit('/', 1)[0]}/other"
        with _session(context) as spark:
            with ha.lead(JOB, timeout=PATIENCE, files=here, zookeeper="") as leadership:
                place = checkpoint_location(leadership, QUERY)
                query = _started(spark, place)
                await_batch(query, WARM_BATCHES, PATIENCE)
                for _, kind in take_turns(KINDS, context.repeats(ROUNDS, 1), context.say):
                    turns.append(_turn(kind, _command(kind, here, there, place), context, query))
                query.stop()
                committed, durations = _progress(query)
                closures = _closures(place)
            context.say("The replica is promoted")
            rto, promoted = _rto(spark, there)
    return _result(turns, committed, durations, closures, (rto, promoted))


def _command(kind: str, here: str, there: str, place: str) -> list[str]:
    if kind == WITH:
        options = ["--to", there, "--files", here, "--zookeeper", "", "--json", "--interval", "0.5"]
        return [sys.executable, "-m", "ha.cli", "replica", "run", JOB, *options]
    if kind == COPY:
        return [sys.executable, "-m", "benchmarks.replication.full_copy", place, f"{there}-copies/copy"]
    return []


def _turn(kind: str, command: Sequence[str], context: Context, query: StreamingQuery) -> Turn:
    """Let the query run for a while, beside a program if there is one, which has begun to move batches."""
    log = context.folder / f"said-{time.monotonic_ns()}.jsonl"
    with log.open("wb") as out, _beside(command, out):
        if command:
            until(lambda: None if _moved(log) else "nothing was moved", PATIENCE, f"{kind} does nothing")
        await_batch(query, newest(query) + 1, PATIENCE)
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
            with suppress(subprocess.TimeoutExpired):
                program.wait(PATIENCE)
            program.kill()


def _moved(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return [each for each in map(json.loads, lines) if each.get("files") and not each.get("problem")]


@contextmanager
def _session(context: Context) -> Iterator[SparkSession]:
    spark = session("local[1]", {**SPARK, "spark.sql.warehouse.dir": str(context.folder / "warehouse")})
    try:
        yield spark
    finally:
        spark.stop()


def _started(spark: SparkSession, place: str) -> StreamingQuery:
    counts = spark.readStream.format("rate").load().selectExpr("value % 1000 AS key").groupBy("key").count()
    writer = counts.writeStream.queryName(QUERY).outputMode("update").option("checkpointLocation", place)
    return writer.trigger(processingTime=f"{TRIGGER_S:g} seconds").format("noop").start()


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


def _rto(spark: SparkSession, there: str) -> tuple[float, float]:
    """Return the seconds from the decision to promote to the first batch there, and to the end of the promotion."""
    began = time.monotonic()
    run_ha(["replica", "promote", JOB, "--files", there, "--zookeeper", "", "--yes", "--json"], check=True)
    promoted = time.monotonic() - began
    with ha.lead(JOB, timeout=PATIENCE, files=there, zookeeper="") as leadership:
        query = _started(spark, checkpoint_location(leadership, QUERY))
        await_batch(query, 0, PATIENCE)
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
        ("beside the query", "batch p50 (ms)", "would be lost p50 (s)", "p99 (s)", "bytes moved ÷ newly referenced"),
        tuple(rows),
        (
            at_most("RPO p99: the trigger and 2 s", LOSS, percentile(lost[WITH], 0.99), "s"),
            at_most("Bytes moved ÷ bytes newly referenced", RATIO, moved[WITH]),
            at_most("A batch is slower by", SLOWDOWN, slowdown, "%"),
            at_most("RTO: from the decision to the first batch there", RTO, ends[0], "s"),
        ),
        (
            "What would be lost: the age of the newest batch that is complete at the other side, at each moment.",
            (
                f"A batch with replication takes {median(ratios):.3f} times as long as one without: the median of the "
                f"rounds, which are from {min(ratios):.3f} to {max(ratios):.3f}."
            ),
            f"RTO: of {ends[0]:.1f} s, `ha replica promote` took {ends[1]:.1f} s. Spark runs there already.",
        ),
        (dotted("batches", title, "ms", series),),
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


# --- what the loss of the cluster would cost at each moment, and what had to be moved


STEP_S = 0.01  # Between two moments at which the loss is looked at


def losses(
    committed: Mapping[int, float], arrived: Sequence[tuple[float, int]], begin: float, end: float
) -> list[float]:
    """Return how old the newest batch at the other side is, at many moments: that much would be lost."""
    times = [at for at, _ in arrived]
    found, steps = [], int((end - begin) / STEP_S)
    for step in range(steps):
        moment = begin + step * STEP_S
        place = bisect_right(times, moment)
        if place:
            found.append(moment - committed[arrived[place - 1][1]])
    return found


def newly_referenced(closures: Mapping[int, Mapping[str, int]], moved: Iterable[int]) -> int:
    """Return the bytes that the closures of these batches have, of files that are in none of those before."""
    known: set[str] = set()
    total = 0
    for batch in moved:
        files = closures[batch]
        total += sum(size for path, size in files.items() if path not in known)
        known |= files.keys()
    return total


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which that share of all values is; NaN without any."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")
