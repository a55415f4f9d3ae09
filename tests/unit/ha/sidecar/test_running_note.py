"""Two sidecars under one job's name: the second says at its start that it would run something else; so do the tools."""

import json
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


class Reads(LocalFiles):
    """Remembers which files are read."""

    def __init__(self, root: Path, *, durable: bool) -> None:
        super().__init__(root, durable=durable)
        self.read_files: list[str] = []

    def read(self, path: str, limit: int) -> bytes:
        self.read_files.append(path)
        return super().read(path, limit)


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


def has_read(tmp_path: Path, directory: FencedDirectory, query: str, uri: str, entry: str = "0") -> Path:
    log = tmp_path / "orders" / directory.leader.name / "spark" / query / "sources/0" / entry
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("v1\n" + json.dumps({"path": f"{uri}/in/a.txt", "timestamp": 1, "batchId": 0}))
    return log


def test_where_the_checkpoints_have_read_their_files(
    tmp_path: Path, opened: BoundedFiles, caplog: pytest.LogCaptureFixture
) -> None:
    """R62 of the reports, where all sites say the same, and the leader's program has named the NameNode otherwise."""
    directory = led_by_a(tmp_path, opened)
    site = Running(ONE.digest, "one.py", "hdfs://localhost:9000")
    RunningNote("orders", "a", site).lead(directory)
    log = has_read(tmp_path, directory, "words", "hdfs://127.0.0.1:9000", "9.compact")
    standby, files = RunningNote("orders", "b", site), Reads(tmp_path, durable=False)
    standby.stand_by(files)
    assert files.read_files == [], "what is compacted may be long"
    log.rename(log.with_name("10"))
    for _ in range(3):
        standby.stand_by(files)
    assert files.read_files == [f"orders/{directory.leader.name}/spark/words/sources/0/10"], "once in an epoch"
    (would,) = others([each.name for each in directory.list()]).values()
    assert (would.files, would.sources) == (site.files, "hdfs://127.0.0.1:9000")
    assert caplog.text.count("have read their files from hdfs://127.0.0.1:9000, the same NameNode: Spark") == 1
    standby_as_it_says = RunningNote("orders", "b", Running(ONE.digest, "one.py", "hdfs://127.0.0.1:9000"))
    RunningNote("orders", "a", standby_as_it_says.running).lead(directory)
    standby_as_it_says.stand_by(files)
    assert not others([each.name for each in directory.list()]), "it is mended"


@pytest.mark.parametrize(
    "uri", ["hdfs://localhost:9000", "hdfs://127.0.0.1:9001", "hdfs://127.0.0.2:9000", "file://", "s3a://bucket"]
)
def test_other_places_are_the_program_s_own_matter(tmp_path: Path, opened: BoundedFiles, uri: str) -> None:
    directory = led_by_a(tmp_path, opened)
    site = Running(ONE.digest, "one.py", "hdfs://localhost:9000")
    RunningNote("orders", "a", site).lead(directory)
    has_read(tmp_path, directory, "words", uri)
    (tmp_path / "orders" / directory.leader.name / "spark/rates/sources/0").mkdir(parents=True)
    (tmp_path / "orders" / directory.leader.name / "spark/rates/sources/0/0").write_text("v1\n1700000000000")
    RunningNote("orders", "b", site).stand_by(LocalFiles(tmp_path, durable=False))
    assert not others([each.name for each in directory.list()])
