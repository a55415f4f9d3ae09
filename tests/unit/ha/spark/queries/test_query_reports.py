"""A driver's reports on its queries, from Spark's events, and the file in which the sidecar reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from ha.program.query_report import MOST_QUERIES, QueryReport, read
from ha.spark.queries.query_reports import QueryEnded, QueryReports, ReportFile
from ha.spark.queries.query_reports import read as progress_of
from tests.unit.ha.waiting import wait_until

PROGRESS: dict[str, Any] = {
    "name": "clean",
    "timestamp": "2026-11-23T04:42:02.581Z",
    "batchId": 3,
    "batchDuration": 1500,
    "numInputRows": 10,
    "eventTime": {"watermark": "2026-11-23T04:41:50.081Z"},
    "stateOperators": [
        {"numRowsTotal": 4, "memoryUsedBytes": 2136, "customMetrics": {"rocksdbSstFileSize": 1000}},
        {"numRowsTotal": 1, "memoryUsedBytes": 64, "customMetrics": {"rocksdbSstFileSize": 24}},
    ],
    "sources": [
        {"endOffset": {"orders": {"0": 5, "1": 7}}, "latestOffset": {"orders": {"0": 9, "1": 7}}},
        {"endOffset": 3, "latestOffset": 4},
        {"endOffset": {"logOffset": 8}, "latestOffset": None},
    ],
}
"""The needed part of what Spark 4.3 has sent, with the offsets of Kafka's documentation."""


class Driver:
    def __init__(self) -> None:
        self.at = 100.0
        self.reports = QueryReports(lambda: self.at)

    def progresses(self, **changed: Any) -> None:
        self.reports.progressed(progress_of(json.dumps({**PROGRESS, **changed})))

    @property
    def clean(self) -> QueryReport:
        (found,) = self.reports.all()
        return found


@pytest.fixture
def driver() -> Driver:
    made = Driver()
    made.reports.started("clean")
    return made


def test_a_batch_tells_all_that_spark_knows(driver: Driver) -> None:
    driver.at = 107.0
    driver.progresses()
    assert driver.clean == QueryReport(
        "clean",
        state="RUNNING",
        fresh_at=107.0,
        starts=1,
        batches=1,
        input_rows=10,
        batch_rows=10,
        batch_seconds=1.5,
        state_rows=5,
        state_bytes=2200,
        checkpoint_bytes=1024,
        backlog=5,
        watermark_lag=12.5,
    )


def test_what_spark_does_not_tell_is_unknown(driver: Driver) -> None:
    driver.reports.progressed(progress_of('{"batchId": 3, "name": "clean", "sources": [{}], "stateOperators": []}'))
    assert driver.clean == QueryReport("clean", state="RUNNING", fresh_at=100.0, starts=1, batches=1)


def test_the_same_batch_counts_once(driver: Driver) -> None:
    driver.progresses()
    driver.at = 200.0
    driver.progresses()
    assert (driver.clean.batches, driver.clean.input_rows, driver.clean.fresh_at) == (1, 10, 100.0)
    driver.progresses(batchId=4)
    assert (driver.clean.batches, driver.clean.input_rows, driver.clean.fresh_at) == (2, 20, 200.0)


def test_a_query_with_nothing_to_do_is_fresh_and_a_restart_makes_none_fresh(driver: Driver) -> None:
    driver.at = 150.0
    driver.reports.started("clean")
    assert driver.clean.fresh_at == 100.0
    driver.reports.idle("clean")
    assert driver.clean.fresh_at == 150.0


def test_failures_restarts_and_states(driver: Driver) -> None:
    driver.reports.ended(QueryEnded("clean", "run", "a fault"))
    assert (driver.clean.state, driver.clean.failures) == ("FAILED", 1)
    driver.reports.shows("clean", "RESTARTING")
    assert driver.clean.state == "RESTARTING"
    driver.reports.started("clean")
    assert (driver.clean.state, driver.clean.starts) == ("RUNNING", 2)
    driver.reports.ended(QueryEnded("clean", "run", None))
    assert (driver.clean.state, driver.clean.failures) == ("FINISHED", 1)


def test_queries_without_a_name_and_more_than_the_most_have_no_series() -> None:
    reports = QueryReports()
    for name in (None, *(f"query-{number}" for number in range(MOST_QUERIES + 1))):
        reports.started(name)
        reports.idle(name)
        reports.ended(QueryEnded(name, "run", None))
    assert len(reports.all()) == MOST_QUERIES


def test_commit_logs_tell_of_batches_alone() -> None:
    driver = Driver()
    for at, batch in ((100.0, 7), (110.0, 7), (120.0, 9)):
        driver.at = at
        driver.reports.committed("clean", batch)
        if at < 120.0:
            assert (driver.clean.batches, driver.clean.fresh_at) == (0, 100.0), "who committed the first is not known"
    assert (driver.clean.batches, driver.clean.fresh_at, driver.clean.starts) == (2, 120.0, 1)


@pytest.mark.parametrize(
    ("latest", "end", "backlog"),
    [
        (9, 5, 4), (5, 9, 0), ({"a": {"0": 9}}, {"a": {"0": 5}}, 4),
        ({"offset": 9, "timestamp": 1000}, {"offset": 5, "timestamp": 100}, None), (None, 5, None), (9, None, None),
        ("a text", "a text", None),
    ],
)  # fmt: skip
def test_the_backlog_counts_records_only(driver: Driver, latest: object, end: object, backlog: int | None) -> None:
    driver.progresses(sources=[{"latestOffset": latest, "endOffset": end}])
    assert driver.clean.backlog == backlog


@pytest.mark.parametrize(
    ("event_time", "lag"),
    [
        ({"watermark": "1970-01-01T00:00:00.000Z"}, None),
        ({"watermark": "1970-01-01T00:00:01.000Z"}, 1795408921.581),
        ({"watermark": "2026-11-23T04:42:02.581Z"}, 0.0),
        ({"watermark": "no time"}, None),
        ({}, None),
    ],
)
def test_the_watermark_lags(driver: Driver, event_time: dict[str, str], lag: float | None) -> None:
    driver.progresses(eventTime=event_time)
    assert driver.clean.watermark_lag == lag


def test_the_file_is_there_with_each_change_and_at_the_end(tmp_path: Path, driver: Driver) -> None:
    path = tmp_path / "queries-1"
    with ReportFile(path, driver.reports):
        wait_until(lambda: read(path))
        driver.reports.ended(QueryEnded("clean", "run", "a fault"))
    (found,) = read(path)
    assert found.state == "FAILED"


def test_a_file_that_fails_is_said_once(tmp_path: Path, driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    with ReportFile(tmp_path / "nowhere" / "queries-1", driver.reports):
        wait_until(lambda: "stand still" in caplog.text)
    assert caplog.text.count("stand still") == 1


def test_a_damaged_report_is_none(tmp_path: Path) -> None:
    path = tmp_path / "queries-1"
    assert read(path) == []
    path.write_bytes(b'[{"name":"clean","batches":2}]')
    assert read(path) == [QueryReport("clean", batches=2)]
    path.write_bytes(b'[{"name":"clean","batches":"many"}]')
    assert read(path) == []


def kafka(start: dict[str, Any], end: dict[str, Any], rows: int | None) -> dict[str, Any]:
    return {"startOffset": start, "endOffset": end, "numInputRows": rows}


@pytest.mark.parametrize(
    ("sources", "skipped"),
    [
        ([kafka({"orders": {"0": 5, "1": 7}}, {"orders": {"0": 9, "1": 8}}, 5)], 0),
        ([kafka({"orders": {"0": 5, "1": 7}}, {"orders": {"0": 9, "1": 8}}, 4)], 1),
        ([kafka({"orders": {"0": 5}}, {"orders": {"0": 9}}, 0)], 4),
        ([kafka({"a": {"0": 0}}, {"a": {"0": 3}}, 1), kafka({"b": {"0": 0}}, {"b": {"0": 3}}, 6)], 2),
        ([kafka({"orders": {"0": 5}}, {"orders": {"0": 2}}, 0)], 0),  # the topic was made anew
        ([kafka({"orders": {"0": 5, "1": 9}}, {"orders": {"0": 7, "1": 3}}, 1)], 1),
        ([kafka({"orders": {"0": 5}}, {"orders": {"0": 6, "1": 90}}, 91)], 0),  # a new partition
        ([kafka({"orders": {"0": 5}}, {"orders": {"0": 9}}, None)], 0),
        ([{"startOffset": None, "endOffset": {"orders": {"0": 9}}, "numInputRows": 4}], 0),
        ([{"startOffset": 3, "endOffset": 9, "numInputRows": 1}], 0),
        ([{"startOffset": {"logOffset": 3}, "endOffset": {"logOffset": 9}, "numInputRows": 1}], 0),
    ],
)
def test_offsets_without_a_row_are_counted(driver: Driver, sources: list[dict[str, Any]], skipped: int) -> None:
    driver.progresses(sources=sources)
    driver.progresses(sources=sources)
    assert driver.clean.skipped == skipped


def test_a_first_batch_that_nobody_read_is_no_loss(driver: Driver) -> None:
    sources = [kafka({"orders": {"0": 5}}, {"orders": {"0": 9}}, 0)]
    driver.progresses(sources=sources, numInputRows=0)
    assert driver.clean.skipped == 0
    driver.progresses(sources=sources, numInputRows=0, batchId=4)
    assert driver.clean.skipped == 4


@pytest.mark.parametrize("name", ["numSnapshotsAutoRepaired", "rocksdbNumSnapshotsAutoRepaired"])
def test_repaired_snapshots_are_counted(driver: Driver, name: str) -> None:
    for batch, count in ((3, 2), (4, 0), (5, 1)):
        driver.progresses(batchId=batch, stateOperators=[{"customMetrics": {name: count}}])
    assert driver.clean.repaired == 3


def test_counters_go_on_from_those_of_a_program_that_has_died(driver: Driver) -> None:
    driver.progresses()
    next_one = QueryReports(lambda: driver.at)
    next_one.resume(driver.reports.all())
    next_one.progressed(progress_of(json.dumps({**PROGRESS, "batchId": 4})))
    (clean,) = next_one.all()
    assert (clean.batches, clean.input_rows, clean.starts) == (2, 20, 1)
