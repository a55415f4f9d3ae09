"""Tests of a report in a folder: written atomically, read back, merged with another one."""

from pathlib import Path

import msgspec
import pytest

from ha.drill.outcome import DrillOutcome, Key
from ha.drill.report import read, write
from ha.history.events import load
from tests.unit.ha.drill.report.synthetic import EVENTS, outcome, report, skipped

KILL = outcome()


def test_everything_is_written_and_the_outcome_says_where(tmp_path: Path) -> None:
    written = write(report(KILL, skipped("cut", "no engine")), {Key.of(KILL): EVENTS}, tmp_path / "new" / "report")
    files = {str(path.relative_to(tmp_path / "new" / "report")) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"report.json", "index.html", "events/kill-sandbox-hybrid-ha.jsonl"}
    assert [each.events for each in written.outcomes] == ["events/kill-sandbox-hybrid-ha.jsonl", ""]
    assert load(tmp_path / "new" / "report" / "events") == EVENTS


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = write(report(KILL, skipped("cut", "no engine")), {}, tmp_path)
    assert read(tmp_path) == written


def test_a_plain_tuple_is_a_key(tmp_path: Path) -> None:
    write(report(KILL), {("kill", "sandbox", "hybrid-ha"): EVENTS}, tmp_path)
    assert (tmp_path / "events/kill-sandbox-hybrid-ha.jsonl").exists()


def test_a_report_that_was_read_is_written_again_with_its_timelines(tmp_path: Path) -> None:
    write(report(KILL), {Key.of(KILL): EVENTS}, tmp_path)
    page = (tmp_path / "index.html").read_bytes()
    written = write(read(tmp_path), {}, tmp_path)
    assert (tmp_path / "index.html").read_bytes() == page
    assert written.outcomes[0].events


def test_two_reports_become_one(tmp_path: Path) -> None:
    write(report(KILL), {Key.of(KILL): EVENTS}, tmp_path)
    other = outcome("stop")
    written = write(report(*read(tmp_path).outcomes, other), {Key.of(other): EVENTS}, tmp_path)
    assert [each.events for each in written.outcomes] == [Key.of(KILL).events, Key.of(other).events]
    assert (tmp_path / "index.html").read_text().count("was granted epoch 2") == 2


def test_a_file_of_events_that_is_gone_is_not_linked(tmp_path: Path) -> None:
    write(report(KILL), {Key.of(KILL): EVENTS}, tmp_path)
    (tmp_path / Key.of(KILL).events).unlink()
    assert write(read(tmp_path), {}, tmp_path).outcomes[0].events == ""


def test_a_drill_without_events_has_no_file(tmp_path: Path) -> None:
    write(report(KILL), {Key.of(KILL): EVENTS}, tmp_path)
    written = write(report(KILL), {Key.of(KILL): []}, tmp_path)
    assert written.outcomes[0].events == ""
    assert "<details>" not in (tmp_path / "index.html").read_text()


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "events" / "older.jsonl").write_text("mine")
    write(report(KILL), {Key.of(KILL): EVENTS}, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == (tmp_path / "events" / "older.jsonl").read_text() == "mine"


def test_who_reads_while_it_is_replaced_reads_the_old_one_to_its_end(tmp_path: Path) -> None:
    write(report(KILL), {}, tmp_path)
    before = (tmp_path / "report.json").read_bytes()
    with (tmp_path / "report.json").open("rb") as reading:
        write(report(skipped("cut", "no engine")), {}, tmp_path)
        assert reading.read() == before


def test_two_outcomes_of_one_key_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="same drill, environment and provider"):
        write(report(KILL, KILL), {}, tmp_path / "report")
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": "1"}', '{"version": 1}'])
def test_what_is_no_report_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(ValueError, match="not a report of drills"):
        read(tmp_path)


def test_no_report_is_an_error_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path)


HOSTILE = ["../../etc/passwd", "a/b", ".hidden", "", "語x", "a\0c", "con<>:|?*", "a d"]


def test_hostile_names_stay_in_the_folder_and_apart(tmp_path: Path) -> None:
    outcomes = [msgspec.structs.replace(KILL, drill=name) for name in HOSTILE]
    few = EVENTS[:3]
    written = write(report(*outcomes), {Key.of(each): few for each in outcomes}, tmp_path / "report")
    assert len({each.events for each in written.outcomes}) == len(HOSTILE)
    for each in written.outcomes:
        path = tmp_path / "report" / each.events
        assert path.is_file()
        assert path.resolve().parent == (tmp_path / "report" / "events").resolve()
    assert {path.name for path in tmp_path.iterdir()} == {"report"}


def test_a_report_from_elsewhere_cannot_name_files_outside(tmp_path: Path) -> None:
    (tmp_path / "secret.jsonl").write_bytes(b"not to be read")
    foreign: DrillOutcome = msgspec.structs.replace(KILL, events="../secret.jsonl")
    written = write(report(foreign), {}, tmp_path / "report")
    assert written.outcomes[0].events == ""
