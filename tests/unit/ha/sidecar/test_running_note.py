"""Two sidecars under one job's name: the second says at its start that it would run something else; so do the tools."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sidecar.running_note import RunningNote
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import WOULD
from leader.layout.running import Running, others, runs
from store.bounded import BoundedFiles
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.ha.cli.test_pausing import asked, listed
from tests.unit.ha.led import Led
from tests.unit.ha.noting import STAYS, UNHURRIED, Notes, run
from tests.unit.ha.programs import Workplace

ONE, TWO = (Running.of(["spark-submit", f"{name}.py"], "") for name in ("one", "two"))


@pytest.mark.programs
def test_a_second_command_under_one_name_is_told(workplace: Workplace, notes: Notes) -> None:
    """R66 of the reports: nobody said it, and the end of one let the other program lead."""
    notes.until(1, run(workplace, "a", STAYS, **UNHURRIED))
    second = run(workplace, "b", f"{STAYS}  # another one", **UNHURRIED)
    second.until_said("b would run another command than the leader: ")
    (other,) = listed(workplace)["others"]
    assert (other["contender"], "where another one of that name, or with other words runs now" in other["why"]) == (
        "b",
        True,
    )
    assert "orders: b would run another command" in asked(workplace, "job", "list")
    assert "b would run another command" in asked(workplace, "host", "doctor", "orders")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[BoundedFiles]:
    with BoundedFiles(lambda: LocalFiles(tmp_path, durable=False), uri=tmp_path.as_uri()) as made:
        yield made


def led_by_a(tmp_path: Path, opened: BoundedFiles) -> FencedDirectory:
    Led(tmp_path).claim("orders", "a:1")
    return JobAdmin(opened, None, PATIENCE_S).directory("orders")


def test_a_standby_says_it_once_and_takes_it_back(
    tmp_path: Path, opened: BoundedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    files = LocalFiles(tmp_path, durable=False)
    standby = RunningNote("orders", "b", TWO)
    standby.stand_by(files)  # there is no such job yet
    directory = led_by_a(tmp_path, opened)

    def names() -> list[str]:
        return [each.name for each in directory.list()]

    standby.stand_by(files)
    assert not others(names()), "what the leader runs is not known"
    with caplog.at_level(logging.WARNING, "ha"):
        RunningNote("orders", "a", ONE).lead(directory)
        for _ in range(3):
            standby.stand_by(files)
    assert (runs(names()), others(names())) == (ONE, {"b": TWO})
    assert caplog.text.count("b would run another command than the leader: two.py, where one.py runs now") == 1
    RunningNote("orders", "a", TWO).lead(directory)
    assert (runs(names()), others(names())) == (TWO, {}), "what a new leader has not been compared with is forgotten"
    directory.make_folder(ONE.entry("b"))
    standby.stand_by(files)
    assert not others(names()), "it runs the same now"
    standby.stand_by(files)
    assert not any(each.startswith(WOULD) for each in names())


def test_where_paths_are_that_name_no_file_system(
    tmp_path: Path, opened: BoundedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    """R62 of the reports: two spellings of one NameNode, and Spark that refuses the checkpoint after the takeover."""
    directory = led_by_a(tmp_path, opened)
    RunningNote("orders", "a", Running(ONE.digest, "one.py", "hdfs://127.0.0.1:9000")).lead(directory)
    there = Running(ONE.digest, "one.py", "hdfs://localhost:9000")
    RunningNote("orders", "b", there).stand_by(LocalFiles(tmp_path, durable=False))
    assert "file system on hdfs://localhost:9000, the leader on hdfs://127.0.0.1:9000: Spark does not" in caplog.text
