"""Tests of histories as Parquet: complete, nothing invented, and other tools can query them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ha.drill.report.tables import SCHEMA, read_events, write_events
from ha.history.events import (
    Believed,
    CheckpointsRead,
    Completed,
    Copied,
    Counted,
    Ended,
    Event,
    Fault,
    Granted,
    LookedUp,
    Published,
    Ran,
    Revoked,
    Stored,
    Suspected,
)
from tests.unit.ha.drill.report.synthetic import Story, history

KEY = ("kill-leader", "sandbox", "hybrid-ha")
EVENTS: list[Event] = [
    Believed(1.0, "orders", "a", 7.0, 7.5),
    Granted(1.1, "orders", "a", 1, "s1", "first"),
    Ran(1.2, "orders", "a", 1, True),
    Published(1.3, "orders", "a", 1, "s1", {"driver": "a:4040", "rest": "a:8080"}),
    Stored(1.4, "orders", "rename", "x", "y", "a"),
    Stored(1.5, "orders", "delete", "x"),
    Copied(1.6, "orders", "write", "/ha/orders", -(2**63), 2**63 - 1, "{}"),
    Copied(1.7, "orders", "delete", "/ha/orders", 0, 0),
    LookedUp(1.8, "orders", 1.9, 2.0, "r", "leader", 1, "s1", {"rest": "a:8080"}, "hdfs", True, False),
    LookedUp(2.0, "orders", 2.1, 2.0, "r", "none"),
    LookedUp(2.2, "orders", 4.2, 2.0, "r", "unreachable"),
    Counted(2.3, "orders", 2.4, "a", 1, 12),
    Completed(2.5, "orders", 2.6, "a", 1, "words", 0),
    CheckpointsRead(2.7, "orders", 2.8, "r", 0, 1, {}),
    CheckpointsRead(2.9, "orders", 3.0, "r", 1, 13, {"words": 0}),
    Fault(3.1, "", "kill -9"),
    Suspected(3.15, "orders", "a", "b"),
    Ended(3.2, "", "a"),
    Believed(3.3, "orders", "b", None, None),
    Revoked(3.4, "orders", "b", "", ""),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "events.parquet"
    write_events(EVENTS, KEY, path)
    return path


def test_every_kind_of_event_comes_back_as_it_was(path: Path) -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))
    assert read_events(path) == EVENTS


def test_one_row_an_event_in_the_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write_events(EVENTS[::-1], KEY, path)
    frame = pd.read_parquet(path)
    assert list(frame["at"]) == sorted(event.at for event in EVENTS)
    assert set(zip(frame["drill"], frame["environment"], frame["provider"], strict=True)) == {KEY}


def test_the_schema_is_said_in_full(path: Path) -> None:
    schema = pq.read_schema(path)
    assert schema.equals(SCHEMA)
    assert all(field.metadata[b"comment"] for field in schema)
    assert str(schema.field("at").type) == "double"
    assert schema.field("endpoints").type.equals(pa.map_(pa.string(), pa.string()))


def test_what_is_not_said_is_null(path: Path) -> None:
    rows = pq.ParquetFile(path).read().to_pylist()
    by_kind = {row["kind"]: row for row in rows}
    assert by_kind["fault"]["who"] is None
    assert by_kind["fault"]["job"] is None
    assert by_kind["believed"]["leads_until"] is None
    assert by_kind["ran"]["source"] is None
    assert by_kind["completed"]["batch"] == 0
    assert by_kind["copied"]["owner"] == 0
    unreachable = next(row for row in rows if row["outcome"] == "unreachable")
    assert [unreachable[name] for name in ("epoch", "session_id", "source", "endpoints")] == [None] * 4
    assert unreachable["verified"] is False


def test_no_end_of_a_belief_is_null_and_an_endless_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write_events(
        [Believed(1.0, "j", "a", float("-inf"), float("nan")), Believed(2.0, "j", "a", float("inf"), 3.0)], KEY, path
    )
    ends = pq.ParquetFile(path).read(["leads_until", "holds_until"]).to_pylist()
    assert ends == [{"leads_until": None, "holds_until": None}, {"leads_until": float("inf"), "holds_until": 3.0}]


def test_pandas_can_ask_what_people_want_to_know(path: Path) -> None:
    frame = pd.read_parquet(path)
    lookups = frame[frame["kind"] == "lookedup"]
    assert lookups.groupby("outcome").size().to_dict() == {"leader": 1, "none": 1, "unreachable": 1}
    assert (lookups["ended"] - lookups["at"]).max() == pytest.approx(2.0)
    assert dict(frame[frame["kind"] == "published"]["endpoints"].iloc[0]) == {"driver": "a:4040", "rest": "a:8080"}


def test_a_row_takes_few_bytes(tmp_path: Path) -> None:
    events = history(Story())
    write_events(events, KEY, tmp_path / "events.parquet")
    assert (tmp_path / "events.parquet").stat().st_size < 40 * len(events)


def test_no_events_are_a_file_as_well(tmp_path: Path) -> None:
    write_events([], KEY, tmp_path / "events.parquet")
    assert read_events(tmp_path / "events.parquet") == []
    assert pq.read_schema(tmp_path / "events.parquet").equals(SCHEMA)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not fit its columns"):
        write_events([Counted(1.0, "j", 1.1, "a", 1, 2**63)], KEY, tmp_path / "events.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no Parquet at all"])
def test_what_is_no_history_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "events.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"events\.parquet holds no history"):
        read_events(tmp_path / "events.parquet")


def test_another_table_is_no_history(tmp_path: Path) -> None:
    for frame in (pd.DataFrame({"a": [1]}), pd.DataFrame({"kind": ["fault"]}), pd.DataFrame({"kind": ["other"]})):
        frame.to_parquet(tmp_path / "events.parquet")
        with pytest.raises(ValueError, match="holds no history"):
            read_events(tmp_path / "events.parquet")


SPARK = """
import json, sys
from pyspark.sql import SparkSession, functions as sql
settings = {
    "spark.driver.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", "spark.ui.enabled": "false",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
events = spark.read.parquet(sys.argv[1])
kinds = {row["kind"]: row["count"] for row in events.groupBy("kind").count().collect()}
slowest = events.where("kind = 'lookedup'").agg(sql.max(sql.col("ended") - sql.col("at"))).first()[0]
driver = events.where("kind = 'published'").select(sql.col("endpoints")["driver"]).first()[0]
print(json.dumps([kinds, slowest, driver]))
"""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(150)
def test_spark_can_ask_as_well(path: Path) -> None:
    """Spark runs in a separate process: other tests have a session with other settings."""
    command = [
        sys.executable,
        "-c",
        SPARK,
        path.as_uri(),
    ]  # a URI: a foreign configuration may name another file system
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=140)
    assert not told.returncode, told.stderr
    kinds, slowest, driver = json.loads(told.stdout.splitlines()[-1])
    assert kinds == Counter(type(event).__name__.lower() for event in EVENTS)
    assert slowest == pytest.approx(2.0)
    assert driver == "a:4040"
