"""Tickets: how long they last, when they are replaced, and what is said when that fails."""

import logging
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.sandbox import realm as realms
from ha.sandbox.ports import free_ports
from store import kerberos
from store.errors import Invalid
from store.kerberos import KerberosLogin, Life, cache_of_environment, keep_logged_in, read_life
from tests.limits import killed
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until
from tests.unit.store.tickets import cache, ticket

SAMPLE = cache(ticket(("hdfs", "nn"), 1, 2), ticket(("krbtgt", "HA.LAB"), 1000, 1100), ticket(("hdfs", "nn"), 5, 6))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ticket"


def test_the_ticket_that_all_others_come_from_says_how_long_they_last(path: Path) -> None:
    path.write_bytes(SAMPLE)
    assert read_life(path) == Life(1000.0, 1100.0)
    assert Life(1000.0, 1100.0).seconds == 100


def test_what_is_no_cache_has_no_ticket(path: Path) -> None:
    assert read_life(path) is None
    for data in (b"", b"\5\3\0\0", b"\5\4", cache(), b"x" * 1000, SAMPLE[:-1]):
        path.write_bytes(data)
        assert read_life(path) is None


@given(st.binary(max_size=200), st.integers(0, len(SAMPLE)))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, noise: bytes, cut: int) -> None:
    path = tmp_path_factory.getbasetemp() / "noise"
    path.write_bytes(SAMPLE[:cut] + noise)
    assert isinstance(read_life(path), Life | None)


def test_a_pipe_in_place_of_a_cache_blocks_nobody(path: Path) -> None:
    """The default place is open to every user of the host: nobody else may stop what reads there."""
    os.mkfifo(path)
    reading = threading.Thread(target=read_life, args=(path,), daemon=True)
    reading.start()
    reading.join(PATIENCE_S)
    assert not reading.is_alive()
    assert read_life(path) is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/a/b", "/a/b"),
        ("FILE:/a/b", "/a/b"),
        ("KCM:1", None),
        (None, f"/tmp/krb5cc_{os.getuid()}"),  # noqa: S108
    ],
)
def test_the_cache_of_the_environment(monkeypatch: pytest.MonkeyPatch, value: str | None, found: str | None) -> None:
    monkeypatch.delenv("KRB5CCNAME", raising=False)
    if value is not None:
        monkeypatch.setenv("KRB5CCNAME", value)
    assert cache_of_environment() == (None if found is None else Path(found))


def test_how_long_the_ticket_of_this_process_lasts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{path}")
    assert kerberos.ticket() is None
    path.write_bytes(SAMPLE)
    monkeypatch.setattr(time, "time", lambda: 1030.0)
    assert kerberos.ticket() == (70.0, 100.0)
    monkeypatch.setattr(time, "time", lambda: 1130.0)
    assert kerberos.ticket() == (-30.0, 100.0)
    monkeypatch.setenv("KRB5CCNAME", "KCM:")
    assert kerberos.ticket() is None


def test_the_end_of_a_ticket_that_nothing_replaces_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{path}")
    watch = kerberos.TicketWatch()
    assert watch.step() == 60.0, "there is no ticket"
    path.write_bytes(SAMPLE)  # from 1000 to 1100
    waits = []
    for at in (1010.0, 1081.0, 1090.0, 1100.0, 1150.0):
        monkeypatch.setattr(time, "time", lambda at=at: at)
        waits.append(watch.step())
    assert waits == [60.0, 19.0, 10.0, 1.0, 1.0]
    said = "Kerberos: the ticket of this process"
    assert caplog.messages == [
        f"{said} ends in 19 s, and then every new connection to HDFS fails: run kinit, or set kerberos_keytab.",
        f"{said} has ended, so every new connection to HDFS fails: run kinit, or set kerberos_keytab.",
    ]
    monkeypatch.setattr(time, "time", lambda: 1050.0)
    watch.step()
    monkeypatch.setattr(time, "time", lambda: 1101.0)
    watch.step()
    assert len(caplog.messages) == 3, "another ticket, another line"


class Kinit:
    """Stands for the program: writes a ticket, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error = ""
        self.begins, self.seconds = 1000, 100
        monkeypatch.setattr(subprocess, "run", self)

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if self.error:
            return subprocess.CompletedProcess(command, 1, "", self.error)
        life = self.begins, self.begins + self.seconds
        Path(command[5]).write_bytes(cache(ticket(("krbtgt", "HA.LAB"), *life)))
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def kinit(monkeypatch: pytest.MonkeyPatch) -> Kinit:
    return Kinit(monkeypatch)


def test_a_ticket_is_replaced_at_four_fifths_and_none_tried_each_second(kinit: Kinit, path: Path) -> None:
    login = KerberosLogin("/keytab", "me", path)
    assert login.step() == 80
    kinit.seconds = 36_000
    assert login.step() == 28_800
    kinit.error = "no"
    path.unlink()
    assert KerberosLogin("/keytab", "me", path).step() == 1.0


def test_a_login_that_fails_keeps_the_ticket_is_said_once_and_tried_again_soon(
    kinit: Kinit, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = [1000.0]
    login = KerberosLogin("/keytab", "me", path, lambda: clock[0])
    login.step()
    kinit.error = "kinit: Cannot contact any KDC\nmore"
    clock[0] = 1080.0
    assert [login.step() for _ in range(3)] == [2, 2, 2]
    (warning,) = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert warning == (
        "Kerberos: me cannot log in (kinit: Cannot contact any KDC); its ticket ends in 20 s. "
        "Then every new connection to HDFS fails."
    )
    assert read_life(path) == Life(1000.0, 1100.0)
    kinit.error, kinit.begins = "", 1090
    assert login.step() == 80
    kinit.seconds = 1_000_000
    login.step()
    kinit.error = "no"
    assert login.step() == 60, "at most a minute"
    assert len(caplog.records) == 2, "another ticket, another warning"


@pytest.mark.usefixtures("kinit")
def test_a_folder_that_a_cleaner_has_taken_is_made_again_unless_somebody_else_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "ha-kerberos-x"
    login = KerberosLogin("/keytab", "me", folder / "ticket")
    assert login.step() == 80
    assert folder.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(folder)
    assert login.step() == 80
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    login.step()
    assert f"({folder} belongs to another user)" in caplog.text


@pytest.mark.usefixtures("kinit")
@pytest.mark.parametrize(("left", "uid", "stays"), [(-9, 0, False), (99, 0, True), (None, 0, True), (-9, 1, True)])
def test_what_a_killed_process_has_left_goes_once_its_ticket_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int | None, uid: int, *, stays: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _: "kinit")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + uid)
    monkeypatch.setattr(kerberos, "_keepers", {})
    monkeypatch.setenv("KRB5CCNAME", "/nowhere")
    (folder := tmp_path / "ha-kerberos-x").mkdir()
    (keytab := tmp_path / "keytab").touch()
    if left is not None:
        (folder / "ticket").write_bytes(cache(ticket(("krbtgt", "HA.LAB"), 900, int(time.time()) + left)))
    keep_logged_in(str(keytab), "me").stop()
    assert folder.exists() == stays


def test_a_ticket_that_lasts_no_time_is_no_reason_to_hurry(kinit: Kinit, path: Path) -> None:
    login = KerberosLogin("/keytab", "me", path)
    kinit.seconds = 0
    assert login.step() == 1.0
    kinit.error = "no"
    assert login.step() == 1.0


def test_a_keytab_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"kerberos_keytab: .*none cannot be read \(No such file"):
        keep_logged_in(str(tmp_path / "none"), "me")


@pytest.fixture
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[realms.Realm]:
    if reason := realms.missing():
        pytest.skip(reason)
    made = realms.Realm(tmp_path / "realm", free_ports(1)[0], life="5s")
    made.make({"driver": ["driver"]})
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", "/nowhere")
    with killed(subprocess.Popen(made.command(), env=os.environ, stderr=subprocess.DEVNULL)):
        yield made


def serves(realm: realms.Realm) -> bool:
    command = [
        realms.program("kinit"), "-k", "-t", str(realm.keytab("driver")), "-c", str(realm.folder / "try"), "driver",
    ]  # fmt: skip
    return subprocess.run(command, check=False, capture_output=True, timeout=120).returncode == 0


@pytest.mark.programs
def test_a_real_ticket_is_replaced_before_it_ends(realm: realms.Realm) -> None:
    wait_until(lambda: serves(realm))
    keeper = keep_logged_in(str(realm.keytab("driver")), "driver")
    try:
        assert keep_logged_in(str(realm.keytab("driver")), "driver") is keeper, "one for each process"
        found = cache_of_environment()
        assert found is not None
        assert found.parent.stat().st_mode & 0o777 == 0o700
        first = read_life(found)
        assert first is not None
        assert first.seconds == 5
        wait_until(lambda: (read_life(found) or first).ends > first.ends)
        second = read_life(found)
        assert second is not None
        assert second.begins <= first.ends, "there was a ticket at every moment"
    finally:
        keeper.stop()
