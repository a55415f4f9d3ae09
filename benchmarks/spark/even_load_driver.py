"""Driver of the benchmark of even load: runs turns under one group of settings, and prints them as a line of JSON."""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.spark.publishing import SPARK
from ha.sandbox.polling import until
from ha.spark.state_defaults import DEFAULTS

CORES, TIMES = 4, 4
"""Of the cluster; and tasks for each of them where there are more."""

ROWS = 240
WARM, BATCHES, FEW = 1, 3, 2
"""Batches that do not count, and those that do: few where one task does everything."""

ROW_MS, SLOW = "ROW_MS", "SLOW_WORKER"
"""Variables of a worker's environment."""

PATIENCE = 300.0

SETTINGS = {
    **SPARK,
    **DEFAULTS,
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}


@dataclass(frozen=True, slots=True)
class Turn:
    """What a query does.

    Attributes:
        source: ``rate``, ``kafka``, or ``state``, which counts the rows of a rate by key before they wait.
        tasks: in which the rows wait, or are counted.
        then: ``coalesce`` or ``repartition`` to one partition after that; empty for neither.
        batches: that count.
        topic: of Kafka.
    """

    source: str
    tasks: int
    then: str = ""
    batches: int = BATCHES
    topic: str = ""


def main(told: dict[str, Any]) -> None:
    """Run all turns."""
    builder = SparkSession.builder.master(told["master"]).appName("even-load")
    spark = builder.config(map={**SETTINGS, "spark.cores.max": f"{CORES}", **told["settings"]}).getOrCreate()
    found = []
    for number, each in enumerate(told["turns"]):
        case = each.pop("case")
        found.append({"case": case, **_turn(spark, Turn(**each), told, f"{told['checkpoints']}/{number}")})
    print(json.dumps(found), flush=True)  # noqa: T201  # read by the benchmark
    spark.stop()


def _turn(spark: SparkSession, turn: Turn, told: dict[str, Any], checkpoint: str) -> dict[str, Any]:
    spark.conf.set("spark.sql.shuffle.partitions", turn.tasks)
    slow: dict[int, float] = {}

    def note(batch: DataFrame, number: int) -> None:
        rows = batch.collect()
        slow[number] = sum(row.slow for row in rows) / len(rows)

    waited = _rows(spark, turn, told["brokers"]).mapInArrow(wait, "slow boolean")
    if turn.then:
        waited = waited.coalesce(1) if turn.then == "coalesce" else waited.repartition(1)
    mode = "update" if turn.source == "state" else "append"
    writer = waited.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
    query = writer.foreachBatch(note).start()
    last = WARM + turn.batches - 1

    def obstacle() -> str | None:
        if (error := query.exception()) is not None:
            raise error
        done = query.lastProgress["batchId"] if query.lastProgress else -1
        return None if done >= last else f"it has come to {done}"

    try:
        until(obstacle, PATIENCE, f"batch {last}")
        progress = [each for each in query.recentProgress if WARM <= each["batchId"] <= last and each["numInputRows"]]
    finally:
        query.stop()
    return {
        "batch_ms": [each["durationMs"]["triggerExecution"] for each in progress],
        "slow": [slow[each["batchId"]] for each in progress],
    }


def _rows(spark: SparkSession, turn: Turn, brokers: str) -> DataFrame:
    if turn.source == "kafka":
        source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
        source = source.option("subscribe", turn.topic).option("startingOffsets", "earliest")
        source = source.option("maxOffsetsPerTrigger", ROWS)
        return (source.option("minPartitions", turn.tasks) if turn.tasks > CORES else source).load().select("value")
    tasks = turn.tasks if turn.source == "rate" else CORES
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    rows = source.option("numPartitions", tasks).load().select("value")
    return rows.groupBy((f.col("value") % ROWS).alias("key")).count() if turn.source == "state" else rows


def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Wait for each row, and say for each whether that was on the slow worker."""
    pause, slow = float(os.environ[ROW_MS]) / 1000, SLOW in os.environ
    for batch in batches:
        time.sleep(pause * batch.num_rows)
        yield pa.RecordBatch.from_pydict({"slow": [slow] * batch.num_rows})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
