"""An outage of a real store leaves a line in the log of a process when it begins, and one when it ends."""

import logging
import re
from contextlib import closing

import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.daemon.health import StoreOutages
from ha.listening import throttle
from ha.sandbox import Sandbox
from store.zookeeper import Connection
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]


def test_one_line_when_it_begins_and_one_when_it_ends(
    stores: dict[str, str], healed: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(throttle, "QUIET_S", 0.1)
    caplog.set_level(logging.WARNING, "ha")

    def said() -> list[str]:
        return [re.sub("after [0-9]+ s", "after N s", each.partition(": ")[0]) for each in caplog.messages]

    with closing(Stores(Settings.of(**stores))) as opened:
        outages = StoreOutages(opened)
        assert opened.zookeeper is not None
        opened.zookeeper.start()
        outages.start()
        wait_until(lambda: opened.zookeeper.state is Connection.CONNECTED)  # type: ignore[union-attr]

        def called() -> bool:
            return opened.files.outcome("make", lambda driver: driver.make_root(), 5.0).done

        healed.safe_mode(True)
        assert not called()
        assert not called()
        healed.safe_mode(False)
        lines = [
            f"The file system {opened.files.uri} (`files`) {{}}",
            f"ZooKeeper at {stores['zookeeper']} (`zookeeper`) {{}}",
        ]
        wait_until(lambda: called() and len(said()) == 2)
        assert said() == [lines[0].format(each) for each in ("does not work", "works again, after N s.")]
        caplog.clear()
        healed.kill("zookeeper-1")
        wait_until(lambda: len(said()) == 1)
        healed.up()
        wait_until(lambda: len(said()) == 2)
        outages.close()
        assert said() == [lines[1].format(each) for each in ("does not work", "works again, after N s.")]
