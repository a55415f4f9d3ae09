"""Metrics of queries and outputs: read from the driver's reports when Prometheus asks, and counted on over restarts."""

import uuid
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from ha.hook.query_watch import FAILED
from ha.metrics.reports import NONE_YET, OutputMetrics, QueryMetrics, ReportFiles
from ha.program import output_report
from ha.program.files import write
from ha.program.output_report import BOUNDS, MOST_OUTPUTS, OutputReport, OutputReports, path_beside, read
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
        self.since: float | None = None
        self.registry = CollectorRegistry()
        told = lambda: self.runs, lambda: self.granted, lambda: self.seen, lambda: self.since
        reports = ReportFiles(self.path, *told)
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


def test_a_spark_program_that_has_started_no_query_ages(command: Command) -> None:
    """It may wait for its cluster for ever, and no query is there that could be stale."""
    command.run()
    assert "ha_checkpoint_age_seconds" not in command.shown, "it may be a program of another kind"
    command.since = 7.5
    assert Exposition(command.registry).value("ha_checkpoint_age_seconds", job_name="orders", query=NONE_YET) == 100
    assert "ha_query_state" not in command.shown
    command.run(QueryReport("clean", fresh_at=100.0))
    assert command.value("ha_checkpoint_age_seconds") == 7.5
    command.run()
    command.granted = False
    assert "ha_checkpoint_age_seconds" not in command.shown


def test_before_the_first_run_there_is_nothing(command: Command) -> None:
    assert command.shown == set()


def test_of_a_program_that_reports_nothing_the_commit_logs_tell(command: Command) -> None:
    command.seen = [QueryReport("clean", state="RUNNING", fresh_at=100.0, starts=1, batches=4)]
    command.runs = 1
    assert command.value("ha_checkpoint_age_seconds") == 7.5
    assert command.value("ha_checkpoints_total") == 4


def test_a_query_without_which_its_program_goes_on_is_shown_as_failed(command: Command) -> None:
    """R13's kind: a program that imports nothing of this package waits for one query, and another one has failed."""
    command.seen = [QueryReport(name, state="RUNNING", fresh_at=100.0, starts=1) for name in ("clean", "other")]
    command.runs = 1
    failed = Path(f"{command.path(1)}{FAILED}")
    for said, states in (
        ({}, ["RUNNING"] * 2),
        (
            {"clean": "no luck", "new": "", str(uuid.uuid4()): "it has no name"},
            ["FAILED", "RUNNING", "FAILED"],
        ),
    ):
        write(failed, said)
        shown = Exposition(command.registry)
        for query, state in zip(("clean", "other", "new"), states, strict=False):
            assert shown.value("ha_query_state", job_name="orders", query=query, state=state) == 1
    command.runs = 2
    assert command.value("ha_query_state", state="RUNNING") == 1
    assert not failed.exists()


class Driver:
    def __init__(self, folder: Path) -> None:
        self.folder, self.number, self.granted = folder, 0, True
        self.registry = CollectorRegistry()
        reports = ReportFiles(lambda run: folder / f"queries-{run}", lambda: self.number, lambda: self.granted)
        OutputMetrics(self.registry, "orders", reports)

    def run(self) -> OutputReports:
        self.number += 1
        reports = OutputReports()
        reports.path = path_beside(self.folder / f"queries-{self.number}")
        return reports

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"job_name": "orders", "output": "clean", **labels})


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path)


def test_files_by_what_became_of_them_over_two_runs(driver: Driver) -> None:
    first = driver.run()
    first.counted("clean", 10, 9, 0, 1)
    first.show()
    assert driver.value("ha_output_lost_files") == 1
    second = driver.run()
    second.counted("clean", 4, 1, 3, 0)
    second.show()
    found = {each: driver.value("ha_output_files_total", outcome=each) for each in output_report.OUTCOMES}
    assert found == {"created": 14, "renamed": 10, "ignored": 3, "failed": 1}
    assert driver.value("ha_output_lost_files") == 0
    assert not path_beside(driver.folder / "queries-1").exists(), "it is counted once"
    assert driver.value("ha_output_files_total", outcome="created") == 14


def test_partitions_over_two_runs(driver: Driver) -> None:
    first = driver.run()
    first.set("clean", pending=3)
    first.add("clean", committed=1, late=1, late_files=4)
    first.show()
    second = driver.run()
    second.counted("clean", 1, 1, 0, 0)
    second.show()
    assert driver.value("ha_output_pending_partitions") is None, "this run has no partition commit"
    assert driver.value("ha_output_partitions_total", outcome="committed") == 1
    second.set("clean", pending=2)
    second.add("clean", late=2, late_files=5)
    second.show()
    assert driver.value("ha_output_pending_partitions") == 2
    assert driver.value("ha_output_partitions_total", outcome="late") == 3
    assert driver.value("ha_output_late_files_total") == 9


def test_dead_letters_over_two_runs(driver: Driver) -> None:
    for count in (3, 4):
        reports = driver.run()
        reports.add("clean", dead_letters=count)
        reports.add("clean", replayed=1, differing=1, gone=2)
        reports.show()
    assert driver.value("ha_output_dead_letters_total") == 7
    assert driver.value("ha_output_replayed_batches_total") == 2
    assert driver.value("ha_output_differing_batches_total") == 2
    assert driver.value("ha_output_gone_files_total") == 4


def test_gaps_are_counted_in_a_file_of_their_own(driver: Driver) -> None:
    """The sidecar counts them if the program does not; the output itself is in the file of the program."""
    first = driver.run()
    first.counted("clean", 2, 2, 0, 1)
    first.show()
    assert driver.value("ha_output_gap_batches") is None
    books = OutputReports()
    books.path = path_beside(driver.folder / f"queries-{driver.number}", "ledger")
    books.set("clean", lacking=3, fullness=0.85)
    books.show()
    assert driver.value("ha_output_directory_fullness") == 0.85
    assert driver.value("ha_output_gap_batches") == 3
    assert driver.value("ha_output_lost_files") == 1


def test_regions_of_the_present_run(driver: Driver) -> None:
    first = driver.run()
    first.set("clean", complete_up_to=7, apart=3, behind={"ERROR": 2, "EXPIRED": 1})
    first.show()
    assert driver.value("ha_output_complete_up_to") == 7
    assert driver.value("ha_output_region_lag_batches") == 3
    assert driver.value("ha_output_regions_behind", state="ERROR") == 2
    assert driver.value("ha_output_regions_behind", state="EXPIRED") == 1
    first.set("clean", complete_up_to=10, apart=0, behind={})
    first.show()
    assert driver.value("ha_output_regions_behind", state="ERROR") == 0
    second = driver.run()
    second.counted("clean", 1, 1, 0, 0)
    second.show()
    assert driver.value("ha_output_complete_up_to") is None, "this run has no regions"


def test_without_a_grant_only_counters_are_shown(driver: Driver) -> None:
    reports = driver.run()
    reports.counted("clean", 1, 1, 0, 0)
    reports.show()
    driver.granted = False
    assert driver.value("ha_output_lost_files") is None
    assert driver.value("ha_output_files_total", outcome="created") == 1


def test_time_of_a_step(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = driver.run()
    at = [100.0]
    monkeypatch.setattr(output_report, "now", lambda: at[0])
    for seconds in (0.005, 0.006, 1000.0):
        with reports.timed("clean", "move"):
            at[0] += seconds
    with pytest.raises(KeyError), reports.timed("clean", "move"):
        raise KeyError
    reports.show()
    bucket = [driver.value("ha_output_step_seconds_bucket", step="move", le=str(bound)) for bound in BOUNDS]
    assert bucket == [1] + [2] * (len(BOUNDS) - 1)
    assert driver.value("ha_output_step_seconds_count", step="move") == 3
    assert driver.value("ha_output_step_seconds_sum", step="move") == pytest.approx(1000.011)
    assert driver.value("ha_output_step_seconds_count", step="write") == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[{}]", b'[{"name": "x", "files": {}}]', b'[{"name": "x", "steps": {"write": {"counts": [1]}}}]'],
)
def test_a_damaged_report_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "report").write_bytes(content)
    assert read(tmp_path / "report") == []


def test_there_are_not_too_many(driver: Driver) -> None:
    reports = driver.run()
    for number in range(MOST_OUTPUTS + 1):
        reports.counted(f"output-{number}", 1, 1, 0, 0)
    assert [each.name for each in reports.all()] == [f"output-{number}" for number in range(MOST_OUTPUTS)]
    reports.counted("output-0", 1, 1, 0, 0)
    assert reports.all()[0].files["created"] == 2


def test_a_report_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    reports = OutputReports()
    reports.show()  # nobody asks for it
    reports.path = tmp_path / "nowhere" / "report"
    reports.show()
    reports.show()
    assert caplog.text.count("The metrics of the outputs stand still") == 1
    reports.path.parent.mkdir()
    reports.counted("clean", 1, 1, 0, 0)
    reports.show()
    assert read(reports.path) == [OutputReport("clean", 0, {"created": 1, "renamed": 1, "ignored": 0, "failed": 0})]


def test_outputs_that_another_process_publishes_are_shown_beside_the_programs(driver: Driver) -> None:
    first = driver.run()
    first.counted("clean", 10, 10, 0, 0)
    first.show()
    for counted in (1, 2):  # one process after the other
        other = OutputReports()
        other.resume(path_beside(driver.folder / "queries-1", "clean-0123"))
        other.counted("clean", counted, counted, 0, 0)
        other.show()
    (driver.folder / "queries-1.outputs-other.staged").write_bytes(b"half")
    assert driver.value("ha_output_files_total", outcome="created") == 13
    driver.run().show()
    assert driver.value("ha_output_files_total", outcome="created") == 13
    assert not path_beside(driver.folder / "queries-1", "clean-0123").exists()
