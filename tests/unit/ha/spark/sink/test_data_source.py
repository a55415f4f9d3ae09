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

from ha.spark.sink.data_source import HaSink, check_version
from ha.spark.sink.leader_home import LeaderHome
from ha.spark.sink.options import SinkOptions
from ha.spark.sink.schema import check_schema
from leader.errors import InvalidSettings, NotLeader

LINES = StructType().add("line", StringType()).add("day", IntegerType())


class Led(HaSink):
    home = LeaderHome("orders", 1, "x", "file:///x/jobs/orders/leader")


def options(kind: str = "parquet", *columns: str) -> SinkOptions:
    return SinkOptions("file:///out", kind, columns, "output", "none")


def test_it_is_found_by_its_module() -> None:
    from pyspark_ha import DefaultSource  # noqa: PLC0415

    assert DefaultSource.name() == "ha"


def test_a_writer_knows_where_tasks_write() -> None:
    made = Led({"path": "/x/out"}).streamWriter(LINES, overwrite=False)
    assert made._rows.startswith("file:///x/jobs/orders/leader/out/output-")  # type: ignore[attr-defined]


def test_without_a_leader_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HA_LEADER_DIRECTORY", raising=False)
    with pytest.raises(InvalidSettings, match="needs a leader"):
        HaSink({"path": "/x/out"})


def test_while_the_job_settles_no_batch_is_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("HA_SETTLE", f"{tmp_path}/settle")
    source = Led({"path": "/x/out"})
    with open(f"{tmp_path}/settle.settling", "w"):  # noqa: PTH123
        with pytest.raises(NotLeader, match="the job is being stopped"):
            Led({"path": "/x/out"})
        source.streamWriter(LINES, overwrite=False)  # what was begun is committed


def test_complete_mode_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"choose outputMode\('append'\) or 'update', not 'complete'"):
        Led({"path": "/x/out"}).streamWriter(LINES, overwrite=True)


def test_a_write_without_a_stream_is_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"use df\.writeStream"):
        Led({"path": "/x/out"}).writer(LINES, overwrite=False)


def test_an_output_that_no_rename_leads_to() -> None:
    with pytest.raises(InvalidSettings, match="choose a directory"):
        Led({"path": "hdfs://names:1/out"}).streamWriter(LINES, overwrite=False)


@pytest.mark.parametrize("version", ["4.1.0", "4.2.1.dev0", "5.0.0"])
def test_versions_that_have_what_it_needs(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.5"])
def test_an_older_one_gets_a_sentence(version: str) -> None:
    with pytest.raises(InvalidSettings, match=rf"needs PySpark 4\.1 or newer, and this is {version}: use ha.spark.Out"):
        check_version(version)


def test_nested_types_are_well() -> None:
    inner = StructType().add("x", ArrayType(MapType(StringType(), DoubleType())))
    check_schema(StructType([*LINES.fields, StructField("inner", inner)]), options("parquet", "day"))


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
def test_schemas_that_cannot_be_written(schema: StructType, given: SinkOptions, says: str) -> None:
    with pytest.raises(InvalidSettings, match=says):
        check_schema(schema, given)


def test_a_timestamp_without_a_zone_is_well_in_parquet() -> None:
    check_schema(StructType().add("x", TimestampNTZType()), options())
