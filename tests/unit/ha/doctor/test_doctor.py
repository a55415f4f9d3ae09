"""``ha host doctor``: each line is ok, a warning or failed, and says what to do."""

import itertools
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from ha.cli import exit_code
from ha.doctor.examination import check_drained
from ha.doctor.file_system import LEFT_OVER_MS, RACERS, check_file_system
from ha.doctor.finding import Finding, Level
from ha.doctor.host import FEWEST_DESCRIPTORS, _clock, _descriptors, _temporary_directory, _ticket
from ha.doctor.job_directory import Consent, check_job_directory
from leader.job.barring import drain
from leader.layout import tree as job
from leader.layout.bar import Bar
from leader.layout.information import Record
from leader.layout.lease import Lease, Mode, first_lease
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from store.bounded import BoundedFiles
from store.clock import wall
from store.contract import TRIED, broken, fresh
from store.counting import REQUESTS, CountedFiles
from store.errors import Invalid, NoSpace
from store.files import Entry
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.leader.samples import A

FORGED = LeaderDirectory(9_999_999_999, A).name
LEADER = f"orders/{LeaderDirectory(0, NOBODY).name}"


@pytest.fixture
def files(tmp_path: Path) -> Iterator[BoundedFiles]:
    with BoundedFiles(lambda: LocalFiles(tmp_path / "jobs", durable=False), uri="file:///jobs") as opened:
        yield opened


@pytest.fixture
def orders(files: BoundedFiles) -> BoundedFiles:
    """The same, with a job that nobody has led."""
    files.call("make", lambda driver: job.create(driver, "orders"), PATIENCE_S)
    return files


def named(files: BoundedFiles, path: str) -> list[str]:
    return sorted(entry.name for entry in files.call("list", lambda driver: driver.list(path), PATIENCE_S))


def levels(found: Iterator[Finding]) -> dict[str, Level]:
    return {each.check: each.level for each in found}


def agreed(question: str) -> bool:
    assert "?" in question
    return True


def examined(files: BoundedFiles, consent: Consent | None = None) -> list[Finding]:
    return list(check_job_directory(files, "orders", 5.0, 60_000, consent))


def test_a_file_system_whose_rename_is_a_compare_and_swap(orders: BoundedFiles) -> None:
    found = levels(check_file_system(orders, 5.0))
    assert found == dict.fromkeys(("files", "permissions", "rename", "replacing", "contents"), Level.OK)
    assert named(orders, "") == ["orders"], "nothing is left behind"


class Careless(LocalFiles):
    """A file system that copies where it should rename: every racer wins, and destinations are replaced."""

    def rename(self, source: str, destination: str) -> None:
        self.make_directory(destination)
        del source


def test_a_file_system_whose_rename_is_none_is_refused(tmp_path: Path) -> None:
    with BoundedFiles(lambda: Careless(tmp_path, durable=False), uri="file:///jobs") as files:
        *_, found = check_file_system(files, 5.0)
    assert (found.check, found.level) == ("replacing", Level.FAILED)
    assert "two contenders could lead there" in found.found
    assert not list(tmp_path.iterdir())


class Racy(LocalFiles):
    """A file system that looks before it renames, which is enough for one at a time."""

    all_have_looked = threading.Barrier(RACERS, timeout=PATIENCE_S)

    def rename(self, source: str, destination: str) -> None:
        if source.endswith("/source"):
            self.list(source)
            self.all_have_looked.wait(PATIENCE_S)
            self.make_directory(destination)
        else:
            super().rename(source, destination)


def test_a_file_system_where_a_race_has_several_winners_is_refused(tmp_path: Path) -> None:
    with BoundedFiles(lambda: Racy(tmp_path, durable=False), uri="file:///jobs") as files:
        found = levels(check_file_system(files, PATIENCE_S))
    assert (found["replacing"], found["rename"]) == (Level.OK, Level.FAILED)


@pytest.mark.parametrize(("age_ms", "left"), [(LEFT_OVER_MS - 60_000, True), (LEFT_OVER_MS + 60_000, False)])
def test_what_a_try_that_was_killed_has_left_is_deleted(
    files: BoundedFiles, tmp_path: Path, age_ms: int, *, left: bool
) -> None:
    folder = tmp_path / "jobs" / f"{TRIED}1-a"
    (folder / "moved").mkdir(parents=True)
    os.utime(folder, (wall() - age_ms / 1000,) * 2)
    (tmp_path / "jobs" / "orders").mkdir()
    assert levels(check_file_system(files, 5.0))["rename"] is Level.OK
    assert (folder.name in named(files, "")) is left
    assert "orders" in named(files, "")


class Killed(BaseException):
    """Nothing is done after it."""


@pytest.mark.parametrize("folder", ["", "orders"])
def test_a_try_that_is_killed_at_any_request_leaves_only_what_is_deleted(
    orders: BoundedFiles, tmp_path: Path, folder: str
) -> None:
    before, most = named(orders, folder), 0
    for last in range(8):
        requests = itertools.count()

        def kill(*_: object, last: int = last, requests: Iterator[int] = requests) -> None:
            if next(requests) == last:
                raise Killed

        with pytest.raises(Killed):
            broken(CountedFiles(LocalFiles(tmp_path / "jobs"), REQUESTS["hdfs"], kill), fresh(folder))
        left = [name for name in named(orders, folder) if name.startswith(TRIED)]
        most = max(most, len(left))
        for name in left:
            os.utime(tmp_path / "jobs" / folder / name, (wall() - LEFT_OVER_MS / 1000 - 60,) * 2)
        assert all(each.level is Level.OK for each in (examined(orders) if folder else check_file_system(orders, 5.0)))
        assert named(orders, folder) == before
    assert most == 2


class Unreadable(LocalFiles):
    def list(self, path: str) -> list:  # type: ignore[type-arg]
        raise Invalid(path)


def test_a_file_system_that_cannot_be_listed(tmp_path: Path) -> None:
    with BoundedFiles(lambda: Unreadable(tmp_path), uri="file:///jobs") as files:
        assert levels(check_file_system(files, 5.0)) == {"files": Level.FAILED}


class Full(LocalFiles):
    def write(self, path: str, data: bytes) -> None:
        raise NoSpace(path[:8] + data.decode())


def test_a_root_that_takes_names_and_no_contents(tmp_path: Path) -> None:
    with BoundedFiles(lambda: Full(tmp_path, durable=False), uri="file:///jobs") as files:
        *_, found = check_file_system(files, 5.0)
    assert (found.check, found.level, found.remedy) == ("contents", Level.FAILED, "Make room there.")
    assert found.found == "No file can be written in file:///jobs: .doctor-x: free some space there"


def test_a_root_that_does_not_exist_yet(files: BoundedFiles) -> None:
    assert levels(check_file_system(files, 5.0)) == {"files": Level.WARNING}


@pytest.mark.parametrize("inside", ["", "/record", "/record/endpoint"])
def test_a_leader_directory_made_by_hand_is_found_and_removed_on_request(orders: BoundedFiles, inside: str) -> None:
    path = f"orders/{FORGED}"
    for part in ("", *inside.split("/")[1:]):
        path = f"{path}/{part}".rstrip("/")
        orders.call("make", lambda driver, path=path: driver.make_directory(path), PATIENCE_S)  # type: ignore[misc]
    fine, hurt = examined(orders)
    assert (fine.level, hurt.level) == (Level.OK, Level.WARNING)
    assert hurt.remedy.startswith("`ha host doctor --mend orders` removes it.")
    assert FORGED in named(orders, "orders")
    assert [each.level for each in examined(orders, agreed)] == [Level.OK, Level.OK]
    assert named(orders, "") == ["orders"]
    assert f"orders/{named(orders, 'orders')[0]}" == LEADER


@pytest.mark.parametrize("kind", ["file", "lease"])
def test_a_directory_with_something_in_it_is_left_to_a_person(orders: BoundedFiles, kind: str) -> None:
    orders.call("make", lambda driver: driver.make_directory(f"orders/{FORGED}"), PATIENCE_S)
    if kind == "file":
        orders.call("make", lambda driver: driver.write(f"orders/{FORGED}/data", b"x"), PATIENCE_S)
    else:
        orders.call("make", lambda driver: driver.make_directory(f"orders/{FORGED}/lease~0"), PATIENCE_S)
    _, hurt = examined(orders, agreed)
    assert (hurt.level, FORGED in named(orders, "orders")) == (Level.WARNING, True)
    assert "hdfs dfs -rm -r file:///jobs/orders/" in hurt.remedy


RECORD = f"{LEADER}/record"
STRAYS = [Lease(9_999_999_999, Mode.HDFS, 6000, A, "", "x").name, "lease~1", f"{first_lease(A).name}.bak"]


@pytest.mark.parametrize("stray", STRAYS, ids=["highest sequence", "no sequence", "a copy"])
def test_a_lease_made_by_hand_is_found_and_removed_on_request(orders: BoundedFiles, stray: str) -> None:
    orders.call("make", lambda driver: driver.make_directory(f"{RECORD}/{stray}"), PATIENCE_S)
    fine, hurt = examined(orders)
    assert (fine.level, hurt.level) == (Level.OK, Level.WARNING)
    assert stray in hurt.found
    assert examined(orders, lambda _: False)[1:] == [hurt], "nothing is changed without consent"
    assert named(orders, RECORD) == sorted([first_lease(NOBODY).name, stray])
    assert [each.level for each in examined(orders, agreed)] == [Level.OK, Level.OK]
    assert named(orders, RECORD) == [first_lease(NOBODY).name]


def test_a_lease_with_something_in_it_is_left_to_a_person(orders: BoundedFiles) -> None:
    orders.call("make", lambda driver: driver.make_directory(f"{RECORD}/{STRAYS[0]}"), PATIENCE_S)
    orders.call("make", lambda driver: driver.write(f"{RECORD}/{STRAYS[0]}/data", b"x"), PATIENCE_S)
    _, hurt = examined(orders, agreed)
    assert (hurt.level, STRAYS[0] in named(orders, RECORD)) == (Level.WARNING, True)


def test_a_record_without_a_lease_gets_one_that_nobody_holds_for_the_long_ttl(orders: BoundedFiles) -> None:
    orders.call("make", lambda driver: driver.delete(f"{RECORD}/{first_lease(NOBODY).name}"), PATIENCE_S)
    _, hurt = examined(orders)
    assert (hurt.level, "60 s later" in hurt.remedy) == (Level.FAILED, True)
    assert named(orders, RECORD) == []
    assert [each.level for each in examined(orders, agreed)] == [Level.OK, Level.OK]
    lease = Record.parse(named(orders, RECORD)).lease
    assert lease is not None
    assert (lease.sequence, lease.mode, lease.ttl, lease.contender) == (0, Mode.HDFS, 60.0, "doctor")
    assert [each.level for each in examined(orders)] == [Level.OK]


class Renaming(LocalFiles):
    """A lease is renamed between any two lists, and the list shows it under both names, or under none."""

    shows_both = True

    def list(self, path: str) -> list[Entry]:
        found = super().list(path)
        leases = [each for each in found if each.name.startswith("lease~")]
        if not leases:
            return found
        (held,) = leases
        lease = Lease.parse(held.name)
        assert lease is not None
        nxt = replace(lease, sequence=lease.sequence + 1)
        self.rename(f"{path}/{held.name}", f"{path}/{nxt.name}")
        renamed = [each for each in super().list(path) if each.name.startswith("lease~")]
        others = [each for each in found if each not in leases]
        first = not lease.sequence
        return others + (leases + renamed if self.shows_both else [] if first else renamed)


@pytest.mark.parametrize("both", [True, False])
def test_a_lease_that_is_renewed_during_the_look_is_no_stray_and_not_missing(tmp_path: Path, both: bool) -> None:
    with BoundedFiles(lambda: Renaming(tmp_path / "jobs", durable=False), uri="file:///jobs") as files:
        files.call("make", lambda driver: setattr(driver, "shows_both", both), PATIENCE_S)
        files.call("make", lambda driver: job.create(driver, "orders"), PATIENCE_S)
        assert [each.level for each in examined(files)] == [Level.OK]


def test_a_job_without_a_leader_directory(files: BoundedFiles) -> None:
    files.call("make", lambda driver: driver.make_root(), PATIENCE_S)
    files.call("make", lambda driver: driver.make_directory("orders"), PATIENCE_S)
    files.call("make", lambda driver: driver.make_directory(f"orders/{FORGED}"), PATIENCE_S)
    (found,) = examined(files)
    assert (found.level, "holds no leader directory" in found.found) == (Level.FAILED, True)
    assert "snapshot" in found.remedy


def test_a_job_that_does_not_exist(files: BoundedFiles) -> None:
    files.call("make", lambda driver: driver.make_root(), PATIENCE_S)
    (found,) = examined(files)
    assert (found.level, found.found) == (Level.FAILED, "There is no such job under file:///jobs.")
    assert found.remedy == "If the name is right, leave it out until the first contender has created it."
    files.call("make", lambda driver: job.create(driver, "ordres"), PATIENCE_S)
    assert examined(files)[0].remedy == "Did you mean ordres?"


@pytest.mark.parametrize(("left", "level"), [(60, Level.WARNING), (-1, Level.OK)])
def test_a_host_that_is_drained(files: BoundedFiles, left: int, level: Level) -> None:
    order = Bar("a", int(wall()) + left, "ada", "new disks")
    files.call("drain", lambda driver: drain(driver, order), PATIENCE_S)
    assert levels(check_drained(files, "a", 5.0)) == {"drained": level}
    assert levels(check_drained(files, "b", 5.0)) == {"drained": Level.OK}


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


def test_the_command_prints_a_line_for_each_check(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.create(LocalFiles(quick, durable=False), "orders")
    assert exit_code(["host", "doctor", "orders"]) == 0
    lines = capsys.readouterr().out.splitlines()
    checks = [(line.split("  ")[0].strip(), line[9:22].strip()) for line in lines if not line.startswith(" ")]
    assert ("ok", "rename") in checks
    assert ("warning", "zookeeper") in checks
    assert ("ok", "job orders") in checks
    assert {"settings", "files", "java", "descriptors", "shared memory", "temporary dir", "clock"} <= {
        check for _, check in checks
    }


@pytest.mark.slow
def test_json_and_exit_code(quick: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_FILES", "hdfs://127.0.0.1:1/ha")
    monkeypatch.setenv("HA_ZOOKEEPER", "127.0.0.1:1")
    assert exit_code(["host", "doctor", "--json"]) == 1
    found = {each["check"]: each for each in json.loads(capsys.readouterr().out)}
    assert (found["files"]["level"], found["zookeeper"]["level"]) == ("failed", "failed")
    assert "HA_FILES" in found["settings"]["found"]
    assert all(each["remedy"] for each in found.values() if each["level"] != "ok")
    assert not quick.exists()


def test_mending_needs_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["host", "doctor", "--mend"]) == 2
    assert "--mend needs the JOB" in capsys.readouterr().err


def test_mending_asks_before_it_changes_anything(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job.create(LocalFiles(quick, durable=False), "orders")
    (quick / "orders" / FORGED).mkdir()
    assert exit_code(["host", "doctor", "--mend", "orders"]) == 2
    assert "without a terminal give --yes" in capsys.readouterr().err
    assert (quick / "orders" / FORGED).exists()
    assert exit_code(["host", "doctor", "--mend", "--yes", "orders"]) == 0
    assert "It was removed." in capsys.readouterr().out
    assert not (quick / "orders" / FORGED).exists()


@pytest.mark.parametrize(
    ("free", "flag", "level"), [(2**30, 0, "ok"), (2**20, 0, "warning"), (2**30, os.ST_NOEXEC, "warning")]
)
def test_the_temporary_directory_has_room(monkeypatch: pytest.MonkeyPatch, free: int, flag: int, level: str) -> None:
    room = SimpleNamespace(f_bavail=free, f_frsize=1, f_flag=flag)
    monkeypatch.setattr("os.statvfs", lambda _: room)
    assert _temporary_directory().level.value == level


def test_noexec_is_no_trouble_where_rocksdbs_library_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the image, whose /tmp Docker mounts so."""
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_bavail=2**30, f_frsize=1, f_flag=os.ST_NOEXEC))
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path}")
    assert _temporary_directory().level.value == "warning"
    (tmp_path / "librocksdbjni-linux64.so").touch()
    assert _temporary_directory().level.value == "ok"


def test_a_temporary_directory_that_takes_nothing_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", f"{tmp_path / 'gone'}")
    found = _temporary_directory()
    assert found.level.value == "failed"
    assert "No file can be made" in found.found
