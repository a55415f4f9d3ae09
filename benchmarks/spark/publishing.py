"""Benchmark of checkpoint publication: costs for a Spark driver, with and without it, in turns of one running query."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

import ha
from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.measuring import rotated
from benchmarks.result import Cell, Result, at_most, table
from benchmarks.spark.session import await_batch, newest, session
from ha.config.sources import load
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from ha.spark import checkpoint_location
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from ha.spark.queries.query_events import publish_checkpoints
from leader.contender.runtime import Runtime
from leader.layout.names import LeaderDirectory

TITLE = "The costs of a Spark driver whose checkpoints are published"

JOB, QUERY = "publishing", "counts"
WITH, WITHOUT, PYSPARK = "published", "not published", "not published, but a listener of PySpark's"
KINDS = (WITHOUT, WITH, PYSPARK)
TURN_S, QUICK_TURN_S = 20, 5
SETTLE_S = 3.0  # Seconds from a switch until a turn begins
WARM_BATCHES = 10
PATIENCE = 120.0
BATCH_MS = 1000.0
SHARE, REQUESTS = 1.0, 3.0  # Upper limits: percent of a batch's time, and requests to the NameNode a batch


@dataclass(frozen=True, slots=True)
class Turn:
    """Measurements of some consecutive batches."""

    batch_ms: list[float]  # duration of each batch
    cpu_ms: float  # of all threads of the Python program, per batch
    thread_ms: float  # of the publisher's thread alone, per batch
    requests: float  # to the NameNode, per publication


class Idle(StreamingQueryListener):
    """Listener that receives all events and does nothing."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Do nothing."""

    onQueryProgress = onQueryTerminated = onQueryStarted  # noqa: N815


class Driver:
    """Driver program that leads its job, with a running query."""

    def __init__(self, spark: SparkSession, leadership: Leadership, query: StreamingQuery) -> None:
        self._spark = spark
        self._query = query
        # A second leadership over the same directory, as a command has under its sidecar, to count its requests.
        self._asked: list[str] = []
        settings = load({"files": leadership.directory.rsplit("/", 2)[0], "snapshots": "off"})
        self._stores = Stores(
            settings, on_requests=lambda operation, requests: self._asked.extend([operation] * requests)
        )
        self._runtime = Runtime("bench", settings.leadership.timing, self._stores.files, None)
        directory = LeaderDirectory(leadership.epoch, leadership.session_id)
        self._counted = Leadership(JOB, directory, self._stores, self._runtime, leadership)

    def turn(self, kind: str, seconds: float) -> Turn:
        """Measure the query for some seconds."""
        publisher = publish_checkpoints(self._spark, self._counted) if kind == WITH else None
        idle = Idle()
        if kind == PYSPARK:
            self._spark.streams.addListener(idle)
        time.sleep(SETTLE_S)
        first, asked = newest(self._query), len(self._asked)
        cpu, thread = time.process_time(), _thread_time(publisher)
        time.sleep(seconds)
        cpu, thread = time.process_time() - cpu, _thread_time(publisher) - thread
        requests = per_publication(self._asked[asked:])
        if publisher is not None:
            publisher.close()
        if kind == PYSPARK:
            self._spark.streams.removeListener(idle)
        found = [each for each in self._query.recentProgress if each.batchId > first]
        batches = len(found)
        if not batches:
            raise TimeoutError(f"Within {seconds:g} s no batch was completed.")
        took = [float(each.batchDuration) for each in found]
        return Turn(took, cpu * 1e3 / batches, thread * 1e3 / batches, requests)

    def close(self) -> None:
        self._query.stop()
        self._runtime.close()
        self._stores.close()


def per_publication(asked: Sequence[str]) -> float:
    """Return the requests per publication, each of which begins with a list; 0 for fewer than two publications."""
    lists = [place for place, operation in enumerate(asked) if operation == "list"]
    return (lists[-1] - lists[0]) / (len(lists) - 1) if len(lists) > 1 else 0.0


def run(context: Context) -> Result:
    seconds = QUICK_TURN_S if context.quick else TURN_S
    rounds: list[dict[str, Turn]] = []
    with servers(context) as sandbox:
        stores = sandbox.environment()
        with _driver(context, stores["HA_FILES"], stores["HA_ZOOKEEPER"]) as driver:
            for number in range(context.repeats()):
                context.say(f"Round {number + 1} of {context.repeats()}")
                rounds.append({kind: driver.turn(kind, seconds) for kind in rotated(KINDS, number)})
    return _result(rounds)


@contextmanager
def _driver(context: Context, files: str, zookeeper: str) -> Iterator[Driver]:
    spark = session("local[1]", {"spark.sql.warehouse.dir": str(context.folder / "warehouse")})
    try:
        with ha.lead(JOB, {"jobmaster": "here:1"}, timeout=PATIENCE, files=files, zookeeper=zookeeper) as leadership:
            counts = spark.readStream.format("rate").load().selectExpr("value % 100 AS key").groupBy("key").count()
            query = (
                counts.writeStream.queryName(QUERY)
                .outputMode("update")
                .option("checkpointLocation", checkpoint_location(leadership, QUERY))
                .trigger(processingTime="1 second")
                .format("noop")
                .start()
            )
            driver = Driver(spark, leadership, query)
            try:
                await_batch(query, WARM_BATCHES, PATIENCE)
                yield driver
            finally:
                driver.close()
    finally:
        spark.stop()


def _thread_time(publisher: CheckpointPublisher | None) -> float:
    """Processor time of the publisher's thread in seconds."""
    ident = publisher._thread.ident if publisher is not None else None  # noqa: SLF001  # it is what is measured
    return time.clock_gettime(time.pthread_getcpuclockid(ident)) if ident is not None else 0.0


def _result(rounds: Sequence[Mapping[str, Turn]]) -> Result:
    cpu = {kind: [turns[kind].cpu_ms - turns[WITHOUT].cpu_ms for turns in rounds] for kind in (WITH, PYSPARK)}
    took = [median(turns[WITH].batch_ms) / median(turns[WITHOUT].batch_ms) for turns in rounds]
    requests = median(turns[WITH].requests for turns in rounds)
    share = median(cpu[WITH]) / BATCH_MS * 100
    columns: dict[str, Callable[[str], Cell]] = {
        "checkpoints": str,
        "batches": lambda kind: sum(len(turns[kind].batch_ms) for turns in rounds),
        "batch p50 (ms)": lambda kind: median(median(turns[kind].batch_ms) for turns in rounds),
        "CPU (ms a batch)": lambda kind: median(turns[kind].cpu_ms for turns in rounds),
        "of it publisher's thread": lambda kind: median(turns[kind].thread_ms for turns in rounds),
        "requests a batch": lambda kind: median(turns[kind].requests for turns in rounds),
    }
    title = "CPU time of the Python program, per batch, in each round"
    series = {kind: [turns[kind].cpu_ms for turns in rounds] for kind in KINDS}
    return Result(
        *table(columns, KINDS),
        (
            at_most("CPU time of publication, of the time of a batch a second", SHARE, share, "%"),
            at_most("Requests to the NameNode for each batch published", REQUESTS, requests),
        ),
        (
            "Medians of the rounds. Each round has turns of all kinds, in changing order, while one query runs.",
            (
                f"A batch with publication takes {median(took):.3f} times as long as one without: the median of the "
                f"rounds, which are from {min(took):.3f} to {max(took):.3f}. The query never waits for publication."
            ),
            (
                f"PySpark's own listener takes {median(cpu[PYSPARK]):.1f} ms a batch to build Python objects from an "
                "event; publication reads the event's JSON."
            ),
            "The publisher lists the commits, takes an id and renames one entry. Spark's own requests are not counted.",
        ),
        (dotted("cpu", title, "ms", series),),
        {
            "rounds": [{kind: asdict(turn) for kind, turn in turns.items()} for turns in rounds],
            "cpu_ms": cpu,
            "took": took,
        },
    )
