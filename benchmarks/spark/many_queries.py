"""Program of many declared queries in regions, one of which can be poisoned: :mod:`benchmarks.spark.regions` runs it.

    ha run JOB -- python -m benchmarks.spark.many_queries PLAN

PLAN is a JSON file. In each region one query publishes the numbers of the input, and the others read and add them up.
Each batch of each query writes one line into the folder of batches. A query whose name is that of a file in the folder
of poison fails.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.readwriter import DataStreamWriter

import ha.spark
from ha.leadership.leadership import Leadership
from store.clock import now

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The program's task.

    Attributes:
        regions: how many.
        queries: in each region.
        interval: seconds between the beginnings of two batches of a query.
        input: URI of the directory of files with a number in each line.
        output: URI of a directory.
        batches: directory of this host; a file for each query.
        poison: directory of this host.
    """

    regions: int
    queries: int
    interval: float
    input: str
    output: str
    batches: str
    poison: str

    def write(self, path: Path) -> None:
        """Write it for the program."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def names(self, region: int) -> list[str]:
        """Return the names of a region's queries; the first one publishes what the others read."""
        return [f"r{region}q{number}" for number in range(self.queries)]


def noting(plan: Plan, query: str, publish: Callable[[DataFrame, int], object] | None) -> Callable[[Any, int], None]:
    """Return what a query does with a batch."""
    poison, notes = Path(plan.poison, query), Path(plan.batches, query)

    def batch(rows: DataFrame, number: int) -> None:
        if poison.exists():
            raise ArithmeticError(f"poison in {query}")
        if publish is not None:
            publish(rows, number)
        (found,) = rows.select(sql.sum("value"), sql.count("*")).collect()
        line = {"at": now(), "batch": number, "sum": found[0] or 0, "rows": found[1]}
        with notes.open("a", encoding="ascii") as file:
            file.write(f"{json.dumps(line)}\n")

    return batch


def declare(job: ha.spark.Job, plan: Plan, region: int) -> None:
    """Declare the queries of a region."""
    first, *others = plan.names(region)
    published = f"{plan.output}/{first}"

    def writer(rows: DataFrame, query: str, publish: Callable[[DataFrame, int], object] | None) -> DataStreamWriter:
        every = {"processingTime": f"{plan.interval:g} seconds"}
        return rows.writeStream.trigger(**every).foreachBatch(noting(plan, query, publish))

    def publishing(spark: SparkSession, leadership: Leadership) -> DataStreamWriter:
        lines = spark.readStream.text(plan.input)
        output = ha.spark.Output(leadership, published, name=first)
        return writer(lines.select(lines["value"].cast("long")), first, output.write)

    def adding(query: str) -> Callable[[SparkSession, Leadership], DataStreamWriter]:
        def add(spark: SparkSession, leadership: Leadership) -> DataStreamWriter:
            del leadership
            return writer(spark.readStream.schema("value long, batch long").json(published), query, None)

        return add

    job.query(name=first, reads=["input"], writes=[published])(publishing)
    for query in others:
        job.query(name=query, reads=[published])(adding(query))


def main() -> None:
    """Run until it is told to stop."""
    plan = Plan(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    job = ha.spark.Job(os.environ["HA_JOB"])
    for region in range(plan.regions):
        declare(job, plan, region)
    known = {**SETTINGS, **ha.spark.executor_settings()}
    job.run(SparkSession.builder.master("local[2]").config(map=dict(known)).getOrCreate())


if __name__ == "__main__":
    main()
