"""Driver program whose tasks look up the leader in every way in which Spark runs Python; it prints their answers.

Run as ``python -m tests.system.spark.in_workers MASTER``; the rest stands in its environment, as ``TOLD`` in JSON.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition, WriterCommitMessage

import ha.spark.worker
from ha.jobmaster import CallUnknown

SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}

TRIES = 100_000
"""Lookups in a task until the next leader must have shown up; with the machine busy there are some minutes in them."""


def address() -> str:
    return ha.spark.worker.job_master().address


def pandas_frames(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield pd.DataFrame({"said": [address()] * len(frame)})


def arrow_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"said": [address()] * batch.num_rows})


def call_for_each(rows: Iterable[Any]) -> None:
    ha.spark.worker.call("POST", "/foreachPartition", str(len(list(rows))).encode())


def through_a_failover(rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Let the leader be replaced while this task runs, and count the answers meanwhile."""
    assert list(rows) == [0]
    first = ha.spark.worker.job_master()
    told = {first.epoch: 1}
    with suppress(CallUnknown):  # its leadership may end before it has answered
        ha.spark.worker.call("POST", "/replace-me")
    for _ in range(TRIES):
        master = ha.spark.worker.job_master()
        told[master.epoch] = told.get(master.epoch, 0) + 1
        if master.epoch > first.epoch:
            break
    by = ha.spark.worker.call("POST", "/after").body.decode()
    yield {"told": told, "by": by, "pid": os.getpid()}


class Asking(DataSource):
    """A source whose rows name the leader, and a sink that reports its rows to the leader."""

    @classmethod
    def name(cls) -> str:
        return "asking"

    def schema(self) -> str:
        return "said string"

    def reader(self, schema: Any) -> DataSourceReader:
        del schema
        return AskingReader()

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        del schema, overwrite
        return AskingWriter()


class AskingReader(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        del partition
        yield (address(),)


class AskingWriter(DataSourceWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        ha.spark.worker.call("POST", "/write", str(len(list(iterator))).encode())
        return WriterCommitMessage()


def said(frame: DataFrame) -> list[str]:
    return [row["said"] for row in frame.collect()]


def who_and_where(rows: Iterable[Any]) -> Iterator[tuple[str, int]]:
    assert list(rows) == [0]  # Spark reuses only workers that have read all of their input
    yield address(), os.getpid()


def main(master: str) -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    told: dict[str, str] = json.loads(os.environ["TOLD"])
    spark = SparkSession.builder.master(master).config(map={**SETTINGS, **told}).getOrCreate()
    spark.dataSource.register(Asking)
    context = spark.sparkContext
    for name, value in told.items():  # the answers in tasks of RDDs
        context.setLocalProperty(name, value)
    one = context.parallelize([0], 1)
    asked = sql.udf(lambda _: address(), "string").asNondeterministic()
    found: dict[str, Any] = {
        "udf": said(spark.range(2).select(asked("id").alias("said"))),
        "mapInPandas": said(spark.range(2).repartition(1).mapInPandas(pandas_frames, "said string")),
        "mapInArrow": said(spark.range(2).repartition(1).mapInArrow(arrow_batches, "said string")),
        "read": said(spark.read.format("asking").load()),
        "workers": [one.mapPartitions(who_and_where).collect()[0] for _ in range(3)],
    }
    spark.range(3).repartition(1).foreachPartition(call_for_each)
    spark.range(4).repartition(1).selectExpr("cast(id as string) as said").write.format("asking").mode("append").save()
    found["failover"] = one.mapPartitions(through_a_failover).collect()[0]
    found["driver"] = os.getpid()
    spark.stop()
    print(json.dumps(found), flush=True)  # noqa: T201  # what the test reads


if __name__ == "__main__":
    main(sys.argv[1])
