"""A driver whose tasks fail or end late: late.py MASTER INPUT ROOT OUTPUT KIND FORMAT [lost|speculative OPENED FOLDER].

It does all batches of INPUT, reads OUTPUT with Spark, and prints what it has found as its last line, in JSON.
"""

import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ha.leadership.leadership import Leadership
from ha.spark import Output
from ha.spark.sink.data_source import HaSink
from ha.spark.sink.leader_home import home_of
from ha.spark.sink.writer import HaWriter
from store.files import Files
from tests.limits import joined
from tests.system.spark.conftest import SETTINGS
from tests.system.spark.held_tasks import WINDOWS, Plan, coming_late, failing_once, held, pause_each
from tests.system.spark.helpers import files_of, leading

LOST = {
    # An executor is lost if it is silent for so long.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "10000",
    "spark.network.timeoutInterval": "1s",
    "spark.executor.heartbeatInterval": "1s",
    "spark.executor.heartbeat.maxFailures": "1000",
    # A late task of the sink asks the driver's paused JVM whether it may commit, and fails after this time.
    "spark.rpc.askTimeout": "15s",
}
SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "0ms",
}
EXECUTORS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",  # rows are passed on before all are there
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.sql.files.maxPartitionBytes": "1m",  # a task for each file
}


class HeldWriter(HaWriter):
    plan: Plan

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with coming_late(self.plan):
            super().commit(messages, batchId)


class HeldSink(HaSink):
    plan: Plan

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        made: Any = super().streamWriter(schema, overwrite)
        made.__class__, made.plan = HeldWriter, self.plan
        return made  # type: ignore[no-any-return]


def staged(uri: str) -> list[str]:
    """Return the files that lie below the folders in which tasks write, in all leader directories of the job."""

    def look(files: Files, path: str = "") -> list[str]:
        found = []
        for each in files.list(path):
            below = f"{path}/{each.name}".lstrip("/")
            found += look(files, below) if each.is_directory else [below]
        return found

    with files_of(uri) as do:
        return [each for each in do(look) if "/staged/" in each]


def days(form: str) -> list[str]:
    """Return the columns of partitions."""
    return ["day"] if form == "text" else []


def run(lines: DataFrame, leadership: Leadership, plan: Plan) -> None:
    target, kind, form = sys.argv[4:7]
    by = days(form)
    writer = lines.writeStream.queryName("lines").trigger(availableNow=True)
    if kind == "Output":
        with Output(leadership, target, source=form, partition_by=by) as output, coming_late(plan):
            writer.foreachBatch(output).start().awaitTermination()
    else:
        lines.sparkSession.dataSource.register(type("Led", (HeldSink,), {"home": home_of(leadership), "plan": plan}))
        sink = writer.format("ha").option("path", target).option("format", form).option("partitionBy", ",".join(by))
        sink.start().awaitTermination()


def main() -> None:
    master, source, root, target, _, form = sys.argv[1:7]
    way = sys.argv[7] if len(sys.argv) > 7 else ""
    settings: dict[str, Any] = {**SETTINGS, **EXECUTORS, **{"lost": LOST, "speculative": SPECULATIVE}.get(way, {})}
    plan = Plan("", (), False)
    if way:
        opened, folder = sys.argv[8:10]
        plan = Plan(folder, WINDOWS if way == "lost" else WINDOWS[-1:], opened == "opened")
        settings |= plan.settings()
    spark = SparkSession.builder.master(master).config(map=settings).getOrCreate()
    gateway = SparkContext._gateway
    assert gateway is not None
    plan = replace(plan, jvm=gateway.proc.pid)
    disturbed = partial(held, plan) if way else failing_once
    lines = spark.readStream.option("maxFilesPerTrigger", 2).text(source)
    columns = lines.selectExpr("value line", "substr(value, 1, 1) day")
    disturbed_lines = columns.mapInArrow(disturbed, "line string, day string")
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        leadership = stack.enter_context(leading("late", root))
        spark.conf.set("spark.sql.streaming.checkpointLocation", leadership.path("spark"))
        pausing = pause_each(plan, lambda: [each for each in staged(f"{root}/late") if f"/part-{1:05d}-" in each])
        run(disturbed_lines, leadership, plan)
        joined(pausing)
        column = "value" if form == "text" else "line"
        read = spark.read.format(form).schema(f"{column} string, day string, batch int").load(target)
        found["rows"] = [list(row) for row in read.groupBy(column, "batch").count().collect()]
        found["staged"] = staged(f"{root}/late")
    with leading("late", root) as leadership, Output(leadership, target, source=form, partition_by=days(form)):
        found["swept"] = staged(f"{root}/late")  # an output of either kind is taken over in the same way
    found["late"] = [plan.note("late", each).read_text() for each in range(len(plan.windows))]
    sys.stdout.write(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
