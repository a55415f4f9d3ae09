"""``ha doctor``: each line is ok, a warning or failed, and says what to do."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.cli import exit_code
from ha.doctor.file_system import check_file_system, check_job_directory
from ha.doctor.finding import Finding, Level
from ha.doctor.host import FEWEST_DESCRIPTORS, _clock, _descriptors, _ticket
from leader.layout import tree as job
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from store.bounded import BoundedFiles
from store.errors import Invalid
from store.local import LocalFiles
from tests.unit.leader.samples import A

FORGED = LeaderDirectory(9_999_999_999, A).name
LEADER = f"orders/{LeaderDirectory(0, NOBODY).name}"


@pytest.fixture
def files(tmp_path: Path) -> Iterator[BoundedFiles]:
    with BoundedFiles(lambda: LocalFiles(tmp_path / "jobs", durable=False), uri="file:///jobs") as opened:
        yield opened


def named(files: BoundedFiles, path: str) -> list[str]:
    return sorted(entry.name for entry in files.call("list", lambda driver: driver.list(path), 5.0))


def levels(found: Iterator[Finding]) -> dict[str, Level]:
    return {each.check: each.level for each in found}


def test_a_file_system_whose_rename_is_a_compare_and_swap(files: BoundedFiles) -> None:
    files.call("make", lambda driver: job.create(driver, "orders"), 5.0)
    found = levels(check_file_system(files, 5.0))
    assert found == dict.fromkeys(("files", "permissions", "rename", "replacing"), Level.OK)
    assert named(files, "") == ["orders"], "nothing is left behind"


class Careless(LocalFiles):
    """A file system that copies where it should rename: every racer wins, and destinations are replaced."""

    def rename(self, source: str, destination: str) -> None:
        self.make_directory(destination)
        del source


def test_a_file_system_whose_rename_is_none_is_refused(tmp_path: Path) -> None:
    with BoundedFiles(lambda: Careless(tmp_path, durable=False), uri="file:///jobs") as files:
        found = levels(check_file_system(files, 5.0))
    assert (found["rename"], found["replacing"]) == (Level.FAILED, Level.FAILED)
    assert not list(tmp_path.iterdir())


class Unreadable(LocalFiles):
    """A file system that refuses everything."""

    def list(self, path: str) -> list:  # type: ignore[type-arg]
        raise Invalid(path)


def test_a_file_system_that_cannot_be_listed(tmp_path: Path) -> None:
    with BoundedFiles(lambda: Unreadable(tmp_path), uri="file:///jobs") as files:
        assert levels(check_file_system(files, 5.0)) == {"files": Level.FAILED}


def test_a_root_that_does_not_exist_yet(files: BoundedFiles) -> None:
    assert levels(check_file_system(files, 5.0)) == {"files": Level.WARNING}


@pytest.mark.parametrize("inside", ["", "/record", "/record/endpoint"])
def test_a_leader_directory_made_by_hand_is_found_and_removed_on_request(files: BoundedFiles, inside: str) -> None:
    files.call("make", lambda driver: job.create(driver, "orders"), 5.0)
    path = f"orders/{FORGED}"
    for part in ("", *inside.split("/")[1:]):
        path = f"{path}/{part}".rstrip("/")
        files.call("make", lambda driver, path=path: driver.make_directory(path), 5.0)  # type: ignore[misc]
    fine, hurt = check_job_directory(files, "orders", 5.0, mend=False)
    assert (fine.level, hurt.level) == (Level.OK, Level.WARNING)
    assert hurt.remedy.startswith("`ha doctor --mend orders` removes it.")
    assert FORGED in named(files, "orders")
    assert [each.level for each in check_job_directory(files, "orders", 5.0, mend=True)] == [Level.OK, Level.OK]
    assert named(files, "") == ["orders"]
    assert f"orders/{named(files, 'orders')[0]}" == LEADER


@pytest.mark.parametrize("kind", ["file", "lease"])
def test_a_directory_with_something_in_it_is_left_to_a_person(files: BoundedFiles, kind: str) -> None:
    files.call("make", lambda driver: job.create(driver, "orders"), 5.0)
    files.call("make", lambda driver: driver.make_directory(f"orders/{FORGED}"), 5.0)
    if kind == "file":
        files.call("make", lambda driver: driver.write(f"orders/{FORGED}/data", b"x"), 5.0)
    else:
        files.call("make", lambda driver: driver.make_directory(f"orders/{FORGED}/lease~0"), 5.0)
    _, hurt = check_job_directory(files, "orders", 5.0, mend=True)
    assert (hurt.level, FORGED in named(files, "orders")) == (Level.WARNING, True)
    assert "hdfs dfs -rm -r file:///jobs/orders/" in hurt.remedy


def test_a_job_that_does_not_exist(files: BoundedFiles) -> None:
    files.call("make", lambda driver: driver.make_root(), 5.0)
    (found,) = check_job_directory(files, "orders", 5.0, mend=False)
    assert (found.level, found.remedy) == (Level.WARNING, "The first contender creates it.")


def test_bounds_of_the_host() -> None:
    assert _descriptors(FEWEST_DESCRIPTORS).level is Level.OK
    assert _descriptors(FEWEST_DESCRIPTORS - 1).level is Level.WARNING
    assert _clock(0.0099, 0.01).level is _clock(-0.0099, 0.01).level is Level.OK
    assert _clock(0.011, 0.01).level is _clock(-0.011, 0.01).level is Level.FAILED


def test_a_ticket(tmp_path: Path) -> None:
    assert _ticket((0.1, 3600.0), "").level is Level.OK
    assert _ticket((0.0, 3600.0), "").level is Level.FAILED
    assert _ticket(None, "").level is Level.WARNING
    keytab = tmp_path / "keytab"
    assert _ticket(None, str(keytab)).level is Level.FAILED
    keytab.touch()
    assert _ticket(None, str(keytab)).level is Level.OK


# --- the command


def test_the_command_prints_a_line_for_each_check(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.create(LocalFiles(quick, durable=False), "orders")
    assert exit_code(["doctor", "orders"]) == 0
    lines = capsys.readouterr().out.splitlines()
    checks = [(line.split("  ")[0].strip(), line[9:22].strip()) for line in lines if not line.startswith(" ")]
    assert ("ok", "rename") in checks
    assert ("warning", "zookeeper") in checks
    assert ("ok", "job orders") in checks
    assert {"settings", "files", "java", "descriptors", "shared memory", "clock"} <= {check for _, check in checks}


def test_json_and_the_exit_code(
    quick: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_FILES", "hdfs://127.0.0.1:1/ha")
    monkeypatch.setenv("HA_ZOOKEEPER", "127.0.0.1:1")
    assert exit_code(["doctor", "--json"]) == 1
    found = {each["check"]: each for each in json.loads(capsys.readouterr().out)}
    assert (found["files"]["level"], found["zookeeper"]["level"]) == ("failed", "failed")
    assert "HA_FILES" in found["settings"]["found"]
    assert all(each["remedy"] for each in found.values() if each["level"] != "ok")
    assert not quick.exists()


def test_mending_needs_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["doctor", "--mend"]) == 2
    assert "--mend needs the JOB" in capsys.readouterr().err
