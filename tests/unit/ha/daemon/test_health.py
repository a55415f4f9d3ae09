"""Notices to systemd, over a real socket in its place; and what the log is told of a store that is away."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.daemon import health
from ha.daemon.health import LONGEST_PAUSE_S, StoreOutages, Systemd
from store.zookeeper import Connection
from store.zookeeper.refusals import Reason
from tests.lacks import no_descriptor_free
from tests.patience import PATIENCE_S
from tests.unit.ha.noting import STAYS, Notes, run
from tests.unit.ha.programs import Workplace
from tests.unit.ha.waiting import wait_until

LEADS = {"orders": {"is_leader": True}, "clicks": {"is_leader": False}}


class PlayedZooKeeper:
    """Its access list has refused something once; later it is away, and may refuse the login."""

    started, session = False, None

    def __init__(self) -> None:
        self.state = Connection.CONNECTED
        self.refusals = {**dict.fromkeys(Reason, 0), Reason.NOT_ALLOWED: 1}

    def close(self, _: float) -> None: ...


@pytest.mark.parametrize(("again", "why"), [(False, "no server has taken its session"), (True, "login-failed")])
def test_what_was_refused_before_an_outage_is_not_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, again: bool, why: str
) -> None:
    monkeypatch.setattr(health, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(health, "CONNECTS_WITHIN_S", 0.001)
    caplog.set_level(logging.WARNING, "ha")
    played, looks = PlayedZooKeeper(), []
    with closing(Stores(Settings.of(files=tmp_path.as_uri(), zookeeper="zk1:2181"))) as stores:
        stores.zookeeper = played  # type: ignore[assignment]
        outages = StoreOutages(stores)
        monkeypatch.setattr(outages._session, "works", lambda: looks.append(1))
        outages.start()
        wait_until(lambda: bool(looks))
        played.refusals = {**played.refusals, Reason.LOGIN_FAILED: int(again)}
        played.state = Connection.LOST
        wait_until(lambda: bool(caplog.messages))
        outages.close()
    assert caplog.messages == [f"ZooKeeper at zk1:2181 (`zookeeper`) does not work: {why}"]


class Listening:
    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self._socket.settimeout(PATIENCE_S)
        self.told = {"NOTIFY_SOCKET": address}

    def next(self) -> str:
        return self._socket.recv(1000).decode()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "@abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Listening]:
    made = Listening(f"@ha-test-{os.getpid()}" if request.param.startswith("@") else str(tmp_path / "notify"))
    yield made
    made.close()


def test_it_is_told_that_a_process_is_ready_what_it_does_and_that_it_stops(systemd: Listening) -> None:
    process = Systemd(lambda: LEADS, systemd.told)
    process.start()
    assert systemd.next() == "READY=1"
    assert systemd.next() == "WATCHDOG=1\nSTATUS=orders: leader, clicks: standby"
    process.close()
    assert systemd.next() == "STOPPING=1"


def test_a_process_whose_contender_hangs_is_not_alive(systemd: Listening, caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([LEADS])

    def statuses() -> dict[str, dict[str, bool]]:
        for answer in answers:
            return answer
        raise TimeoutError

    process = Systemd(statuses, {**systemd.told, "WATCHDOG_USEC": "30000"})
    process.start()
    assert [systemd.next().partition("\n")[0] for _ in range(2)] == ["READY=1", "WATCHDOG=1"]
    wait_until(lambda: "systemd is not told that this process is alive" in caplog.text)
    process.close()
    assert systemd.next() == "STOPPING=1", "and nothing in between"


def test_a_process_without_a_free_descriptor_is_alive(systemd: Listening) -> None:
    """systemd would end it, and with it what runs."""
    process = Systemd(lambda: LEADS, {**systemd.told, "WATCHDOG_USEC": "30000"})
    process.start()
    with no_descriptor_free():
        assert [systemd.next().partition("\n")[0] for _ in range(5)] == ["READY=1", *(["WATCHDOG=1"] * 4)]
    process.close()
    while systemd.next() != "STOPPING=1":
        pass


@pytest.mark.parametrize(
    ("environment", "pause"),
    [
        ({}, LONGEST_PAUSE_S),
        ({"WATCHDOG_USEC": "6000000"}, 2.0),
        ({"WATCHDOG_USEC": "60000000"}, LONGEST_PAUSE_S),
        ({"WATCHDOG_USEC": "6000000", "WATCHDOG_PID": str(os.getpid())}, 2.0),
        ({"WATCHDOG_USEC": "6000000", "WATCHDOG_PID": "1"}, LONGEST_PAUSE_S),
        ({"WATCHDOG_USEC": "soon"}, LONGEST_PAUSE_S),
        ({"WATCHDOG_USEC": "0"}, LONGEST_PAUSE_S),
    ],
)
def test_two_of_three_notices_may_come_late(environment: dict[str, str], pause: float) -> None:
    assert Systemd(dict, environment)._pause == pause


def test_without_systemd_nothing_is_done(caplog: pytest.LogCaptureFixture) -> None:
    process = Systemd(lambda: pytest.fail("nobody asked"), {})
    process.start()
    process.close()
    assert not caplog.records


def test_a_systemd_that_does_not_listen_harms_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    process = Systemd(dict, {"NOTIFY_SOCKET": str(tmp_path / "none")})
    process.start()
    process.close()
    assert "systemd is not told 'READY=1': No such file or directory." in caplog.text


def test_ha_run_tells_it(workplace: Workplace, tmp_path: Path) -> None:
    listening = Listening(str(tmp_path / "notify"))
    sidecar = run(workplace, "a", STAYS, **listening.told)
    assert listening.next() == "READY=1"
    Notes(workplace).until(1, sidecar)
    assert listening.next().startswith("WATCHDOG=1\nSTATUS=")
    sidecar.process.terminate()
    while (said := listening.next()) != "STOPPING=1":
        assert said.startswith("WATCHDOG=1")
    listening.close()
