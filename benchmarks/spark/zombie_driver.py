"""Driver that :mod:`benchmarks.spark.zombie` freezes inside a batch; its successor is the same program.

    ha run JOB -- python -m benchmarks.spark.zombie_driver PLAN NAME

PLAN is a JSON file. Each of its cases is a separate query over the same input. ``fenced`` queries use ``ha``; the
others do what Spark's documentation says: a checkpoint somewhere, and ``foreachBatch`` that appends.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha.spark
import ha.spark.tools
from benchmarks.spark.session import session
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch
from ha.outputs.record import Record
from leader.errors import Fenced

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORES = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
IDS = "spark.sql.streaming.stateStore.checkpointFormatVersion"
IDS_OF = {"hdfs": "1", "rocksdb": "2"}
"""HDFSBackedStateStore knows no ids, and `ha.spark.lead` chooses them for queries that begin."""

GATED_BATCH = 1  # Batch in which the first driver waits at the gate, inside ``foreachBatch``
SETTINGS = {"spark.driver.memory": "768m", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


class Gate:
    """Local directory through which the benchmark stops the first driver, and drivers report to it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name

    def say(self, what: str, text: str = "") -> None:
        """Create a file; it appears complete."""
        staged = self.folder / f".{self.name}-{what}"
        staged.write_text(text)
        staged.rename(self.folder / f"{self.name}-{what}")

    def pass_through(self, case: str, batch_id: int) -> None:
        """Wait until the gate is open, if this is the first driver's batch, and the first time."""
        if self.name == "first" and batch_id == GATED_BATCH and not (self.folder / f"first-inside-{case}").exists():
            self.say(f"inside-{case}")
            while not (self.folder / "open").exists():
                threading.Event().wait(0.05)


class Late(ha.spark.Output):
    """Output that waits at the gate just before it publishes: rows and state are written."""

    def wait_at(self, gate: Gate, case: str) -> None:
        publish = self._journal.publish

        def late(attempt: str, batch: Batch, wrote: Record, least: int = 0) -> bool:
            gate.pass_through(case, batch.number)
            return publish(attempt, batch, wrote, least)

        cast("Any", self._journal).publish = late


def writer(case: dict[str, Any], leadership: Leadership, gate: Gate) -> Callable[[DataFrame, int], None]:
    name, source, target = case["name"], case["format"], case["target"]
    output = Late(leadership, target, name, source=source) if case["fenced"] else None
    if output is not None:
        output.wait_at(gate, name)

    def write(batch: DataFrame, batch_id: int) -> None:
        if case["asleep"] == "writing":
            gate.pass_through(name, batch_id)
        rows = batch.coalesce(1)
        try:
            if output is not None:
                output(rows, batch_id)
            else:
                rows.write.format(source).mode("append").save(target)
        except Exception as error:
            gate.say(f"wrote-{name}", outcome(error, leadership))
            raise
        gate.say(f"wrote-{name}", "written")

    return write


def outcome(error: Exception, leadership: Leadership) -> str:
    """Describe whether the fence refused the batch, and at which step."""
    if not isinstance(ha.spark.tools.explain(error, leadership), Fenced):
        return f"failed: {type(error).__name__}"
    return "publication refused" if isinstance(error, Fenced) else "state refused"


def start(spark: SparkSession, leadership: Leadership, case: dict[str, Any], plan: dict[str, Any], gate: Gate) -> Any:
    """Start one query; the state store is chosen when it starts."""
    spark.conf.set(PROVIDER, STORES[case["store"]])
    spark.conf.set(IDS, IDS_OF[case["store"]])
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(plan["input"])
    stream = lines.dropDuplicates(["value"]).writeStream.queryName(case["name"]).outputMode("append")
    if not case["fenced"]:
        stream = stream.option("checkpointLocation", case["checkpoint"])
    return stream.foreachBatch(writer(case, leadership, gate)).start()


def finish(queries: dict[str, StreamingQuery], leadership: Leadership, gate: Gate) -> None:
    """Wait until each query has finished or failed; raise the first failure when all have ended."""
    failed: Exception | None = None
    for name, query in queries.items():
        try:
            query.processAllAvailable()
            gate.say(f"ended-{name}", "well")
        except Exception as error:  # noqa: BLE001  # Spark's or py4j's: it is reported
            explained = ha.spark.tools.explain(error, leadership)
            gate.say(f"ended-{name}", str(explained or type(error).__name__))
            failed = failed or error
    if failed is not None:
        raise failed


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    gate = Gate(Path(plan["gate"]), sys.argv[2])
    spark = session("local[2]", SETTINGS)
    gate.say("session")
    with ha.spark.lead(plan["job"], spark) as leadership:
        finish({each["name"]: start(spark, leadership, each, plan, gate) for each in plan["cases"]}, leadership, gate)
        leadership.finish()  # its queries are still active


if __name__ == "__main__":
    main()
