"""The outages that a process notes: what it says of ZooKeeper is what has happened since it was connected last."""

import logging
from contextlib import closing
from pathlib import Path

import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.daemon import store_outages
from ha.daemon.store_outages import StoreOutages
from store.zookeeper import Connection
from store.zookeeper.refusals import Reason
from tests.unit.ha.waiting import wait_until


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
    monkeypatch.setattr(store_outages, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(store_outages, "CONNECTS_WITHIN_S", 0.001)
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
