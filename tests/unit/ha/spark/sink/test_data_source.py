"""The data source: what it refuses before a row is written, each in one sentence."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from ha.spark.sink.data_source import HaSink, check_schema, check_version
from ha.spark.sink.leader_home import LeaderHome
from ha.spark.sink.options import SinkOptions
from leader.errors import InvalidSettings, NotLeader

LINES = StructType().add("line", StringType()).add("day", IntegerType())


class Led(HaSink):
    home = LeaderHome("orders", 1, "x", "file:///x/jobs/orders/leader")


def options(kind: str = "parquet", *columns: str) -> SinkOptions:
    return SinkOptions("file:///out", kind, columns, "output", "none", "spark/q")


def test_it_is_found_by_its_module() -> None:
    from pyspark_ha import DefaultSource  # noqa: PLC0415

    assert DefaultSource.name() == "ha"


def test_a_writer_knows_where_tasks_write() -> None:
    made = Led({"path": "/x/out", "queryName": "q"}).streamWriter(LINES, overwrite=False)
    assert made._rows.startswith("file:///x/jobs/orders/leader/out/output-")  # type: ignore[attr-defined]


def test_without_a_leader_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HA_LEADER_DIRECTORY", raising=False)
    with pytest.raises(InvalidSettings, match="needs a leader"):
        HaSink({"path": "/x/out"})


def test_while_the_job_settles_no_batch_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("HA_SETTLE", f"{tmp_path}/settle")
    source = Led({"path": "/x/out", "queryName": "q"})
    with open(f"{tmp_path}/settle.settling", "w"):  # noqa: PTH123
        with pytest.raises(NotLeader, match="the job is being stopped"):
            Led({"path": "/x/out", "queryName": "q"})
        source.streamWriter(LINES, overwrite=False)  # what was begun is committed


@pytest.mark.parametrize(
    ("path", "writer", "overwrite", "says"),
    [
        ("/x/out", "streamWriter", True, r"choose outputMode\('append'\) or 'update', not 'complete'"),
        ("/x/out", "writer", False, r"use df\.writeStream"),
        ("hdfs://names:1/out", "streamWriter", False, "choose a directory"),
    ],
    ids=["complete mode", "no stream", "no rename leads there"],
)
def test_what_cannot_be_written_is_refused(path: str, writer: str, *, overwrite: bool, says: str) -> None:
    with pytest.raises(InvalidSettings, match=says):
        getattr(Led({"path": path, "queryName": "q"}), writer)(LINES, overwrite=overwrite)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5"])
def test_a_version_without_what_it_needs_gets_a_sentence(version: str) -> None:
    for new in ("4.1.0", "4.2.1.dev0", "5.0.0"):
        check_version(new)
    with pytest.raises(InvalidSettings, match=rf"needs PySpark 4\.1 or newer, and this is {version}: use ha.spark.Out"):
        check_version(version)


@pytest.mark.parametrize(
    ("schema", "given", "says"),
    [
        (LINES, options("parquet", "hour"), "partitionBy names 'hour', but the query's columns are line, day"),
        (StructType().add("x", DoubleType()).add("y", DoubleType()), options("parquet", "x"), "'x' of type double"),
        (LINES, options("parquet", "line", "day"), "All columns are in partitionBy"),
        (LINES, options("text"), "has one column, a string, but the query has line, day beside partitionBy"),
        (StructType().add("x", IntegerType()), options("text"), "has one column, a string, but the query has x"),
        (StructType().add("x", NullType()), options(), "'x' of type void cannot be written by the format ha"),
        (StructType().add("x", ArrayType(NullType())), options(), "'x' of type array<void> cannot be written"),
        (StructType().add("x", MapType(StringType(), NullType())), options(), "cannot be written"),
        (StructType().add("x", StructType()), options(), "cannot be written"),
        (StructType().add("x", TimestampNTZType()), options("orc"), "'x' of type timestamp_ntz cannot be written"),
    ],
)
def test_schemas_that_can_and_cannot_be_written(schema: StructType, given: SinkOptions, says: str) -> None:
    inner = StructType().add("x", ArrayType(MapType(StringType(), DoubleType())))
    check_schema(StructType([*LINES.fields, StructField("inner", inner)]), options("parquet", "day"))
    check_schema(StructType().add("x", TimestampNTZType()), options())
    with pytest.raises(InvalidSettings, match=says):
        check_schema(schema, given)
