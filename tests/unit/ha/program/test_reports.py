"""Reports of a driver: what several runs have counted is added, what is so now is not; what is no report is none."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ha.program import end_file, engine_state, output_report, query_report, settle_file
from ha.program.end_file import End
from ha.program.engine_state import EngineState
from ha.program.output_report import BOUNDS, OUTCOMES, STEPS, OutputReport, OutputReports, Timing, path_beside
from ha.program.query_report import QueryReport
from ha.program.settle_file import Settle, begin, note_drained

COUNTS = ("lost", "committed", "late", "late_files", "dead_letters", "replayed", "differing")
KEPT = ("pending", "lacking", "fullness")
REGIONS = ("complete_up_to", "apart", "behind")


def full(by: int) -> OutputReport:
    """A report in which no two numbers are the same."""
    made = OutputReport("clean", files={each: by * (at + 2) for at, each in enumerate(OUTCOMES)})
    for at, field in enumerate((*COUNTS, *KEPT, "complete_up_to", "apart")):
        setattr(made, field, by * (at + 10))
    made.behind = {"ERROR": by}
    for at, step in enumerate(STEPS):
        made.steps[step] = Timing([by * (at + 30 + each) for each in range(len(BOUNDS) + 1)], by * (at + 0.5))
    return made


def test_what_two_runs_have_counted_is_added() -> None:
    added = full(1)
    added.add(full(100))
    for field in COUNTS:
        assert getattr(added, field) == 101 * getattr(full(1), field), field
    assert added.files == {each: 101 * count for each, count in full(1).files.items()}
    assert added.steps == {
        each: Timing([101 * one for one in step.counts], 101 * step.seconds) for each, step in full(1).steps.items()
    }
    assert [getattr(added, field) for field in KEPT] == [getattr(full(1), field) for field in KEPT]
    assert [getattr(added, field) for field in REGIONS] == [getattr(full(100), field) for field in REGIONS]


def test_what_a_run_does_not_know_is_taken_from_the_other() -> None:
    added, zero = OutputReport("clean"), OutputReport("clean", pending=0, lacking=0, fullness=0.0)
    added.add(full(1))
    assert added == full(1)
    added.add(OutputReport("clean"))
    assert added == full(1), "nothing is no news"
    zero.add(full(1))
    assert [getattr(zero, field) for field in KEPT] == [0, 0, 0], "none is a number, too"
    zero.add(OutputReport("clean", complete_up_to=0))
    assert [getattr(zero, field) for field in REGIONS] == [0, 0, {}]


def test_the_next_process_goes_on_from_what_is_in_the_file(tmp_path: Path) -> None:
    """The names of the reports of runs 1 and 10 begin alike, and a file that is being written is none."""
    queries = tmp_path / "queries-1"
    for name in ("queries-1.outputs.staged", "queries-10.outputs", "queries-1.end"):
        (tmp_path / name).write_text("[]")
    first, second = OutputReports(), OutputReports()
    first.show()
    first.resume(path_beside(queries))
    first.counted("clean", 5, 3, 1, 1)
    first.set("sums", pending=2)
    first.show()
    second.add("clean", replayed=1)
    second.resume(path_beside(queries))
    second.counted("clean", 1, 1, 0, 0)
    second.show()
    second.resume(path_beside(queries, "ledger"))
    second.show()
    clean, sums = output_report.read(path_beside(queries))
    assert (clean.files, clean.replayed, clean.lost) == ({"created": 6, "renamed": 4, "ignored": 1, "failed": 1}, 1, 0)
    assert (sums.name, sums.pending) == ("sums", 2)
    assert output_report.paths_beside(queries) == [
        tmp_path / "queries-1.outputs",
        tmp_path / "queries-1.outputs-ledger",
    ]


def test_a_report_that_is_not_whole_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "outputs"
    wrong = [full(1), full(2), full(3)]
    del wrong[0].files["failed"]
    del wrong[1].steps["move"]
    wrong[2].steps["move"].counts.pop()
    path.write_bytes(msgspec.json.encode([*wrong, full(4)]))
    assert output_report.read(path) == [full(4)]
    for content in (b"", b"[1]", b"\xff"):
        path.write_bytes(content)
        assert (output_report.read(path), query_report.read(path)) == ([], [])
    assert (output_report.read(tmp_path / "none"), query_report.read(tmp_path / "none")) == ([], [])


def test_reports_have_room_for_so_many(tmp_path: Path) -> None:
    made, path = OutputReports(), tmp_path / "queries"
    for number in range(output_report.MOST_OUTPUTS + 2):
        made.add(f"output{number}", replayed=1)
        made.add(f"output{number}", replayed=1)
    assert [each.replayed for each in made.all()] == [2] * output_report.MOST_OUTPUTS
    path.write_bytes(msgspec.json.encode([QueryReport(f"{each}") for each in range(query_report.MOST_QUERIES + 1)]))
    assert [each.name for each in query_report.read(path)] == [f"{each}" for each in range(query_report.MOST_QUERIES)]


@pytest.mark.parametrize(("took", "bucket"), [(0.0, 0), (0.005, 0), (0.006, 1), (60.0, 12), (60.1, 13)])
def test_a_step_is_counted_in_its_bucket_unless_it_fails(
    monkeypatch: pytest.MonkeyPatch, took: float, bucket: int
) -> None:
    made, clock = OutputReports(), [0.0]
    monkeypatch.setattr(output_report, "now", lambda: clock[0])
    for _ in range(2):
        with made.timed("clean", "move"):
            clock[0] = took
        clock[0] = 0.0
    with pytest.raises(ValueError, match="it fails"), made.timed("clean", "move"):
        raise ValueError("it fails")
    (report,) = made.all()
    counts = [0] * (len(BOUNDS) + 1)
    counts[bucket] = 2
    assert (report.steps["move"], report.steps["write"]) == (Timing(counts, 2 * took), Timing())


def test_a_file_that_cannot_be_written_is_said_once_each_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made, folder = OutputReports(), tmp_path / "run"
    made.path = folder / "outputs"
    for times in (1, 2):
        for _ in range(3):
            made.show()
        assert len([each for each in caplog.records if "stand still" in each.getMessage()]) == times
        folder.mkdir(exist_ok=True)
        made.show()
        for each in [*folder.iterdir(), folder]:
            each.rmdir() if each.is_dir() else each.unlink()


def test_restarts_are_the_starts_after_the_first() -> None:
    count = query_report.COUNTERS["ha_query_restarts"][1]
    assert [count(QueryReport("a", starts=each)) for each in (0, 1, 2, 5)] == [0, 0, 1, 4]


def test_an_engine_and_an_end_of_which_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_state.newest(tmp_path / "none") == EngineState(0, 0, 0, 0.0, gave_up=False)
    report = tmp_path / "queries-1"
    monkeypatch.setenv("HA_QUERIES", f"{report}")
    assert end_file.told(report) == End("", "", inside=False)
    for end in (end_file.INSIDE, End(remedy="mend it"), End("x" * 1001, "y" * 1001)):
        end_file.tell(end)
        assert end_file.told(report) == End(end.said[:1000], end.remedy[:1000], end.inside)
        assert end_file.told(tmp_path / "queries-10") == End()
    end_file.tell(End())
    assert end_file.told(report) == End()
    assert end_file.of(report).exists(), "it has said how it ends: nobody else does"
    monkeypatch.delenv("HA_QUERIES")
    end_file.tell(end_file.INSIDE)
    assert [each.name for each in tmp_path.iterdir()] == ["queries-1.end"]


def test_one_step_of_settling_is_not_another(tmp_path: Path) -> None:
    path = tmp_path / "settle-1"
    said: list[Callable[[Path], object]] = [settle_file.asked, settle_file.begun, settle_file.drained]
    steps: list[Callable[[Path], object]] = [lambda at: settle_file.ask(at, Settle(5.0)), begin, note_drained]
    for at, step in enumerate(steps):
        assert [bool(each(path)) for each in said] == [number < at for number in range(3)]
        step(path)
    assert settle_file.asked(path) == Settle(5.0, drain=False)
    assert all(each(path) for each in said)
