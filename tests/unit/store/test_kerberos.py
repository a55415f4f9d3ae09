"""Tickets: how long they last, when they are replaced, and what is said when that fails."""

import logging
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.sandbox import realm as realms
from store import kerberos
from store.errors import Invalid
from store.kerberos import KerberosLogin, Life, cache_of_environment, keep_logged_in, read_life
from tests.unit.store.tickets import cache, ticket
from tests.unit.store.zookeeper.helpers import free_ports, until

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
    read_life(path)


def test_a_pipe_in_place_of_a_cache_blocks_nobody(path: Path) -> None:
    """The default place is open to every user of the host: nobody else may stop what reads there."""
    os.mkfifo(path)
    reading = threading.Thread(target=read_life, args=(path,), daemon=True)
    reading.start()
    reading.join(10)
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


def test_a_ticket_is_replaced_at_four_fifths_of_its_life(kinit: Kinit, path: Path) -> None:
    login = KerberosLogin("/keytab", "me", path)
    assert login.step() == 80
    kinit.seconds = 36_000
    assert login.step() == 28_800


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


def test_a_ticket_that_lasts_no_time_is_no_reason_to_hurry(kinit: Kinit, path: Path) -> None:
    login = KerberosLogin("/keytab", "me", path)
    kinit.seconds = 0
    assert login.step() == 1.0
    kinit.error = "no"
    assert login.step() == 1.0


def test_without_any_ticket_it_is_tried_every_second(kinit: Kinit, path: Path) -> None:
    kinit.error = "no"
    assert KerberosLogin("/keytab", "me", path).step() == 1.0


def test_a_keytab_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"kerberos_keytab: .*none cannot be read \(No such file"):
        keep_logged_in(str(tmp_path / "none"), "me")


@pytest.fixture
def realm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[realms.Realm]:
    """A centre that gives tickets of 5 seconds."""
    if reason := realms.missing():
        pytest.skip(reason)
    made = realms.Realm(tmp_path / "realm", free_ports(1)[0], life="5s")
    made.make({"driver": ["driver"]})
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", "/nowhere")
    with subprocess.Popen(made.command(), env=os.environ, stderr=subprocess.DEVNULL) as centre:
        yield made
        centre.terminate()


def serves(realm: realms.Realm) -> bool:
    command = [
        realms.program("kinit"),
        "-k",
        "-t",
        str(realm.keytab("driver")),
        "-c",
        str(realm.folder / "try"),
        "driver",
    ]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.programs
def test_a_real_ticket_is_replaced_before_it_ends(realm: realms.Realm) -> None:
    until(lambda: serves(realm))
    keeper = keep_logged_in(str(realm.keytab("driver")), "driver")
    try:
        assert keep_logged_in(str(realm.keytab("driver")), "driver") is keeper, "one for each process"
        found = cache_of_environment()
        assert found is not None
        assert found.parent.stat().st_mode & 0o777 == 0o700
        first = read_life(found)
        assert first is not None
        assert first.seconds == 5
        until(lambda: (read_life(found) or first).ends > first.ends)
        second = read_life(found)
        assert second is not None
        assert second.begins <= first.ends, "there was a ticket at every moment"
    finally:
        keeper.stop()
