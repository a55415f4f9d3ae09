"""What a program may start: each rule, with writers that only note what they are told."""

import sys
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyspark.sql.streaming.readwriter  # noqa: F401  # before a fixture puts another module in its place
import pytest

from ha.hook import guarding
from ha.hook.guarding import Guard, Refused, change, guarded
from ha.hook.query_rules import NAMELESS
from tests.unit.ha.hook.writers import HERE, Writer


class Output:
    def __call__(self, *_: object) -> None: ...
    def write(self, *_: object) -> None: ...


Output.__module__ = "ha.spark.outputs.output"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    guard = Guard(HERE, lambda name, why: said.append((name, why)))
    module = SimpleNamespace(DataStreamWriter=Writer)
    monkeypatch.setitem(sys.modules, guarding.WRITERS, module)
    assert change(module) is change(module)
    monkeypatch.setattr(change(module), "guards", [guard])
    monkeypatch.setattr(change(module), "told", set())
    return said


def ha() -> Any:
    return Writer().format("ha").option("path", "/out").queryName("q")


def test_a_guarded_query_starts_as_ever(told: list[tuple[str, str]]) -> None:
    writer: Any = Writer()
    assert writer.start("/out", format="parquet", queryName="q", outputMode="append", compression="none") == "query"
    assert writer.said[-1] == ("start", "/out")
    assert {each[0] for each in writer.said} == {"format", "queryName", "outputMode", "options", "start"}
    assert not told
    assert writer.properties == [(guarding.EVERY, None), (guarding.EVERY, None)]


def test_nothing_begins_after_the_end(told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    class OverError(Exception):
        pass

    ends, stopped = iter([False, True, True]), []

    def check() -> None:
        if next(ends):
            raise OverError

    def start(writer: Writer, *_: object) -> Any:
        writer.said.append(("start",))
        return SimpleNamespace(stop=lambda: stopped.append("q"))

    monkeypatch.setattr(Writer, "start", guarding._asking(start, "path"))
    monkeypatch.setattr(change(sys.modules[guarding.WRITERS]), "guards", [Guard(HERE, lambda *_: None, check=check)])
    late: Any = Writer().format("noop").queryName("q")
    with pytest.raises(OverError):
        late.start()
    assert (late.said[-1], stopped) == (("start",), ["q"]), "the end came while it was started"
    refused: Any = Writer().format("noop").queryName("q")
    with pytest.raises(OverError):
        refused.start()
    assert ("start",) not in refused.said
    assert not told


def test_nothing_begins_between_two_leaderships(told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    class OverError(Exception):
        pass

    over: list[bool] = []

    def check() -> None:
        if over:
            raise OverError

    module = sys.modules[guarding.WRITERS]
    monkeypatch.setattr("pyspark.sql.streaming.readwriter", module)
    monkeypatch.setattr(change(module), "guards", [])
    monkeypatch.setattr(change(module), "over", bool)
    with guarded(Guard(HERE, lambda *_: None, check=check)):
        assert ha().start() == "query"
        over.append(True)
    with pytest.raises(OverError):
        ha().start()
    with guarded(Guard(HERE, lambda *_: None)):
        assert ha().start() == "query"
    assert not told


@pytest.mark.parametrize(
    ("name", "location", "says"),
    [
        ("", "", "it has no name, so it begins anew at each start"),
        ("q", "hdfs://names:8020/own/q", "its checkpoint hdfs://names:8020/own/q is not in hdfs://names:8020/ha"),
        ("", f"{HERE}/a/b", "is not in"),
    ],
)
def test_one_without_a_guard_is_told_first(told: list[tuple[str, str]], name: str, location: str, says: str) -> None:
    writer: Any = Writer().format("console")
    writer = writer.queryName(name) if name else writer
    writer = writer.option("checkpointLocation", location) if location else writer
    assert writer.start() == "query"
    assert [(query, says in why) for query, why in told] == [(name, True)]


@pytest.mark.parametrize(("function", "every"), [(Output(), "true"), (Output().write, "true"), (lambda *_: None, None)])
def test_an_output_that_spark_calls_gets_batches(told: list[tuple[str, str]], function: Any, every: str | None) -> None:
    """A function may skip some, so nobody misses those."""
    writer: Any = Writer()
    writer.foreachBatch(function).queryName("q").start()
    assert writer.properties[0] == (guarding.EVERY, every)
    assert bool(told) == (every is None)


def test_a_session_that_keeps_checkpoints_elsewhere_is_seen(told: list[tuple[str, str]]) -> None:
    writer: Any = Writer("file:///own")
    writer.format("console").queryName("q").start()
    assert "its checkpoint file:///own/q is not in" in told[0][1]


class Plan:
    """What py4j shows of a frame: the leaves of its plan, by what Spark calls them."""

    def __init__(self, *sources: str) -> None:
        self.sources = sources

    def __getattr__(self, _: str) -> Any:
        return lambda: self

    def size(self) -> int:
        return len(self.sources)

    def apply(self, number: int) -> Any:
        return SimpleNamespace(toString=lambda: self.sources[number])


def reading(writer: Any, *sources: str) -> Any:
    writer._df = SimpleNamespace(_jdf=Plan(*sources))
    return writer


def test_a_source_that_keeps_nothing_is_told(told: list[tuple[str, str]]) -> None:
    for sources in (("FileSource[/in]", "rate"), ("FileSource[/in]", "socket")):
        reading(Writer(), *sources).format("parquet").queryName("q").start("/out")
    assert told == [("q", f"not guarded: {guarding.FORGETS}")]


def test_what_spark_begins_anew_has_a_new_checkpoint_each_time(told: list[tuple[str, str]]) -> None:
    places = set()
    for _ in range(2):
        writer: Any = Writer()
        writer.format("memory").queryName("q").start(outputMode="append")
        (place,) = [said[2] for said in writer.said if said[:2] == ("option", "checkpointLocation")]
        folder, _, name = place.rpartition("/")
        assert (folder, bool(NAMELESS.fullmatch(name))) == (HERE, True)
        places.add(place)
    assert len(places) == 2
    assert told == [("q", f"not guarded: {guarding.BEGINS_ANEW}")] * 2


def test_a_table_in_memory_with_the_whole_result_goes_on(told: list[tuple[str, str]]) -> None:
    writer: Any = Writer()
    writer.format("memory").queryName("q").start(outputMode="complete")
    assert not [said for said in writer.said if said[0] == "option"]
    assert not told


REFUSED = [
    (lambda: reading(ha(), "socket"), "'q' is not started: its source socket keeps nothing"),
    (lambda: reading(Writer().queryName("q").foreachBatch(Output()), "socket"), "its source socket keeps nothing"),
    (lambda: Writer().format("ha").option("path", "/out"), "A query without a name is not started: it has no name"),
    (lambda: ha().option("CheckpointLocation", "/own"), "'q' is not started: its checkpoint /own is not in"),
    (lambda: ha().trigger(continuous="1 second"), "continuous has no batches to publish"),
    (lambda: ha().trigger(realTime="1 second"), "realTime has no batches to publish"),
    (lambda: ha().clusterBy("a"), "its output cannot be clustered"),
    (lambda: ha().partitionBy("a").option("partitionBy", "b"), "partitionBy a would be lost; say it once"),
    (lambda: Writer().foreachBatch(Output()), "it has no name"),
    (lambda: Writer().queryName("q").foreachBatch(Output()).partitionBy("a"), "say partition_by to Output"),
    (lambda: Writer().queryName("q").foreachBatch(Output().write).option("mergeSchema", True), "mergeschema would be"),
    (lambda: Writer().format("console").queryName("bronze/orders"), "'bronze/orders' cannot be the name of a query"),
]


@pytest.mark.parametrize(("made", "says"), REFUSED)
def test_what_would_lose_rows_or_be_lost_is_refused(told: list[tuple[str, str]], made: Any, says: str) -> None:
    writer = made()
    with pytest.raises(Refused, match=says):
        writer.start()
    assert "start" not in {each[0] for each in writer.said}
    assert not told


@pytest.mark.parametrize("trigger", [{"processingTime": "1 second"}, {"availableNow": True}, {"once": True}])
@pytest.mark.parametrize(
    ("made", "mode"),
    [(ha, "append"), (ha, "update"), (lambda: Writer().queryName("q").foreachBatch(Output()), "complete")],
)
def test_what_is_done_as_spark_does_it_is_passed_on(
    told: list[tuple[str, str]], made: Any, mode: str, trigger: dict[str, Any]
) -> None:
    writer = made().trigger(**trigger)
    assert writer.start(outputMode=mode) == "query"
    assert [("trigger", *trigger.items()), ("options",), ("outputMode", mode), ("start",)] == writer.said[-4:]
    assert not told


@pytest.mark.parametrize(
    ("made", "start", "asked"),
    [
        (lambda: Writer().format("text").queryName("q"), {"path": "/out"}, ("q", "/out", f"{HERE}/q", "")),
        (lambda: Writer().format("").option("path", "/out").queryName("q"), {}, ("q", "/out", f"{HERE}/q", "")),
        (lambda: Writer().format("csv").option("path", "/out"), {}, ("", "/out", "", "")),
        (lambda: Writer().queryName("q").option("checkpointLocation", "/c"), {"path": "/o"}, ("q", "/o", "/c", "")),
        (lambda: Writer().queryName("q"), {"tableName": "t"}, ("q", "", f"{HERE}/q", "t")),
        (lambda: Writer().queryName("q"), {"tableName": "t", "path": "/o"}, ("q", "/o", f"{HERE}/q", "t")),
        (lambda: Writer().format("delta").queryName("q"), {"path": "/out"}, None),
        (lambda: Writer().foreachBatch(Output()).queryName("q"), {}, None),
    ],
)
def test_what_sparks_file_sink_would_drop_is_refused(
    told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, made: Any, start: dict[str, str], asked: Any
) -> None:
    seen = []

    def fault(_: Any, query: str, path: str, checkpoint: str, runs: Any, *, table: str, copies: bool) -> str:
        assert not runs(query)
        assert not copies
        seen.append((query, path, checkpoint, table))
        return "its batches would be dropped."

    watched = change(sys.modules[guarding.WRITERS])
    monkeypatch.setattr(watched, "queries", {})
    forgotten = list[str]()
    monkeypatch.setattr(watched, "sinks", SimpleNamespace(fault=fault, forget=forgotten.append))
    writer = made()
    with pytest.raises(Refused, match="not started: its batches would be dropped") if asked else nullcontext():
        getattr(writer, "toTable" if "tableName" in start else "start")(**start)
    assert seen == [asked] * bool(asked)
    assert forgotten == [asked[0] if asked else "q"], "where it wrote before, if it did, does not count"
    assert not told


def test_in_a_dry_run_the_guard_of_a_program_that_leads_knows_that_checkpoints_are_copies(
    told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[bool] = []

    def fault(*_: Any, copies: bool, **__: Any) -> str:
        copied.append(copies)
        return ""

    watched = change(sys.modules[guarding.WRITERS])
    monkeypatch.setattr(watched, "guards", [Guard(HERE, lambda *_: None, copies=True), *watched.guards])
    monkeypatch.setattr(watched, "sinks", SimpleNamespace(fault=fault, forget=str))
    writer: Any = Writer()
    writer.format("text").queryName("q").start("/out")
    assert copied == [True]
    assert not told


def test_a_table_is_refused_to_the_format(told: list[tuple[str, str]]) -> None:
    with pytest.raises(Refused, match="writes to a path, not to a table"):
        ha().toTable(tableName="t")
    writer: Any = Writer()
    assert writer.toTable("t", queryName="q") == "query"
    assert not told


@pytest.mark.parametrize("columns", [("day", "hour"), (["day", "hour"],)])
def test_partitions_reach_the_format_as_its_option(told: list[tuple[str, str]], columns: Any) -> None:
    writer = ha().partitionBy(*columns)
    writer.start()
    assert ("option", "partitionBy", "day,hour") in writer.said
    assert not told


def test_a_query_of_another_session_resumes_and_is_fenced_as_well(told: list[tuple[str, str]]) -> None:
    writer: Any = Writer(default="").format("parquet").queryName("q")
    writer.start()
    assert ("option", "checkpointLocation", f"{HERE}/q") in writer.said
    assert not told


def test_a_session_is_told_of_the_format_by_the_first_query_that_writes_with_it(
    told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark takes half a second for that: a job without such a query does not wait for it in its takeover."""
    taught: list[Any] = []
    watched = change(sys.modules[guarding.WRITERS])
    monkeypatch.setattr(watched, "guards", [Guard(HERE, lambda *_: None, teach=taught.append)])
    Writer().format("parquet").queryName("q").start("/out")
    assert not taught
    writer = ha()
    writer.start()
    assert taught == [writer._spark]
    assert not told


def test_any_thread_may_start_a_query_with_the_format(told: list[tuple[str, str]]) -> None:
    plain: Any = Writer().format("parquet").queryName("q")
    for writer, active in ((ha(), ["its session"]), (plain, [])):
        writer.start()
        assert writer.active == active
    assert not told


def _appends(rows: Any, _: int) -> None:
    rows.write.mode("append").text("out")


here = Output()


@pytest.mark.parametrize("function", [here, here.write, lambda rows, batch: here.write(rows, batch + 1)])
def test_a_function_that_has_an_output_is_exactly_once(told: list[tuple[str, str]], function: Any) -> None:
    Writer().queryName("q").foreachBatch(function).start()
    assert not told


def test_a_function_without_an_output_is_told_until_one_takes_a_batch(told: list[tuple[str, str]]) -> None:
    Writer().queryName("q").foreachBatch(lambda *_: None).start()
    guarding.knows_batches("q")
    assert told == [("q", guarding.AGAIN), ("q", "")]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_appends, "_appends uses text"),
        (partial(_appends, here), "_appends uses text"),
        (lambda rows, batch: [f(rows, batch + 1) for f in (_appends, here.write)], "_appends uses text"),
    ],
)
def test_a_function_that_writes_elsewhere_too_is_told(told: list[tuple[str, str]], function: Any, says: str) -> None:
    Writer().queryName("q").foreachBatch(function).start()
    assert told == [("q", f"not exactly once: {says}, which may write elsewhere: {guarding.AGAIN.partition(': ')[2]}")]
    guarding.knows_batches("q")
    assert len(told) == 1, "what its output takes says nothing of the other sink"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Writer().foreach(print), "foreach"),
        (lambda: Writer().format("console").foreach(here), "foreach"),
        (lambda: Writer().format("kafka"), "kafka"),
        (lambda: Writer().format("MongoDB"), "mongodb"),
        (lambda: Writer().format("a.source.of.the.Program"), "a.source.of.the.program"),
    ],
)
def test_a_sink_that_nobody_knows_is_told(told: list[tuple[str, str]], made: Any, says: str) -> None:
    writer = made().queryName("q")
    assert writer.start() == "query"
    ((query, why),) = told
    assert query == "q"
    assert why.startswith(f"not exactly once: nobody knows of {says} that it takes a batch once: if its driver dies")


@pytest.mark.parametrize("name", sorted(guarding.EXACT_FORMATS))
def test_a_format_that_knows_a_batch_again_is_not_told(told: list[tuple[str, str]], name: str) -> None:
    writer: Any = Writer().format(name).outputMode("complete")
    writer.queryName("q").start()
    assert not told


@pytest.mark.parametrize(
    ("table", "settings", "says"),
    [
        ("t", {}, ""),
        ("sales.orders", {}, ""),
        ("lake.sales.orders", {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}, ""),
        ("t", {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}, ""),
        ("c.sales.orders", {"spark.sql.catalog.c": "com.datastax.spark.connector.datasource.C"}, "the catalog c"),
        ("t", {"spark.sql.defaultCatalog": "c", "spark.sql.catalog.c": "com.example.C"}, "the catalog c"),
        ("t", {"spark.sql.sources.default": "mongodb"}, "mongodb"),
    ],
)
def test_a_table_is_told_if_nobody_knows_its_catalog(
    told: list[tuple[str, str]], table: str, settings: dict[str, str], says: str
) -> None:
    writer: Any = Writer()
    writer.settings.update(settings)
    writer.queryName("q").toTable(table)
    assert [says in why for _, why in told] == [True] * bool(says)


def test_no_query_starts_unguarded_unnoticed(told: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change(sys.modules[guarding.WRITERS]), "guards", [])
    writer: Any = Writer()
    assert writer.foreachBatch(_appends).start() == "query"
    guarding.knows_batches("q")
    assert not told
