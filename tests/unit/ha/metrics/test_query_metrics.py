"""Metrics of queries: read from the driver's report when Prometheus asks, and counted on over restarts."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from ha.metrics.reports import QueryMetrics, ReportFiles
from ha.program.files import write
from ha.program.query_report import STATES, QueryReport
from tests.unit.ha.metrics.complete import CLEAN
from tests.unit.ha.metrics.exposition import Exposition

QUERY = {"job_name": "orders", "query": "clean"}


class Command:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0
        self.granted = True
        self.seen: list[QueryReport] = []
        self.registry = CollectorRegistry()
        reports = ReportFiles(self.path, lambda: self.runs, lambda: self.granted, lambda: self.seen)
        QueryMetrics(self.registry, "orders", reports, lambda: 107.5)

    def path(self, run: int) -> Path:
        return self.folder / f"queries-{run}"

    def run(self, *reports: QueryReport) -> None:
        self.runs += 1
        write(self.path(self.runs), list(reports))

    def value(self, name: str, **labels: str) -> float:
        return Exposition(self.registry).value(name, **QUERY, **labels)

    @property
    def shown(self) -> set[str]:
        return {sample.name for family in Exposition(self.registry).families for sample in family.samples}


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_everything_that_the_driver_reports_is_shown(command: Command) -> None:
    command.run(QueryReport(**{**{each: getattr(CLEAN, each) for each in CLEAN.__struct_fields__}, "fresh_at": 100.0}))
    expected = {
        "ha_checkpoint_age_seconds": 7.5,
        "ha_checkpoint_duration_seconds": 0.5,
        "ha_checkpoint_rows": 100,
        "ha_checkpoint_size_bytes": 4096,
        "ha_checkpoints_total": 9,
        "ha_query_failures_total": 1,
        "ha_query_restarts_total": 1,
        "ha_query_input_rows_total": 900,
        "ha_query_skipped_offsets_total": 6,
        "ha_query_repaired_snapshots_total": 2,
        "ha_query_backlog": 7,
        "ha_query_watermark_lag_seconds": 12.5,
        "ha_query_state_rows": 10,
        "ha_query_state_bytes": 2136,
    }
    assert {name: command.value(name) for name in expected} == expected
    assert [each for each in STATES if command.value("ha_query_state", state=each)] == ["RUNNING"]


def test_what_is_not_known_has_no_sample(command: Command) -> None:
    command.run(QueryReport("clean", fresh_at=100.0))
    counters = {
        "ha_checkpoints_total", "ha_query_failures_total", "ha_query_restarts_total", "ha_query_input_rows_total",
        "ha_query_skipped_offsets_total", "ha_query_repaired_snapshots_total",
    }  # fmt: skip
    assert command.shown == {
        "ha_checkpoint_age_seconds",
        "ha_query_state",
        "ha_queries_unguarded",
        "ha_queries_repeated",
        *counters,
    }


def test_counters_go_on_over_restarts_although_nobody_asked_in_between(command: Command) -> None:
    for failures in (1, 2, 3):
        command.run(QueryReport("clean", starts=1, failures=failures, batches=10))
    assert command.value("ha_query_failures_total") == 6
    assert command.value("ha_checkpoints_total") == 30
    assert command.value("ha_checkpoints_total") == 30, "and each run counts once"
    assert [path.name for path in sorted(command.folder.iterdir())] == ["queries-3"]
    command.run()
    assert command.value("ha_checkpoints_total") == 30, "of a query that the new run has not started yet"


def test_a_command_that_does_not_lead_has_counters_only(command: Command) -> None:
    command.run(CLEAN)
    command.granted = False
    assert command.value("ha_checkpoints_total") == 9
    assert not {"ha_checkpoint_age_seconds", "ha_query_state", "ha_query_backlog"} & command.shown


def test_before_the_first_run_there_is_nothing(command: Command) -> None:
    assert command.shown == set()


def test_of_a_program_that_reports_nothing_the_commit_logs_tell(command: Command) -> None:
    command.seen = [QueryReport("clean", state="RUNNING", fresh_at=100.0, starts=1, batches=4)]
    command.runs = 1
    assert command.value("ha_checkpoint_age_seconds") == 7.5
    assert command.value("ha_checkpoints_total") == 4
