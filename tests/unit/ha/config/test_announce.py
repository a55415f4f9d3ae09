"""The first line of a process names its stores, and says if they protect this host alone."""

import logging
from pathlib import Path

import pytest

from ha.config.announce import announce
from ha.config.sources import gather


def test_the_stores_and_where_they_come_from(caplog: pytest.LogCaptureFixture) -> None:
    Path("ha.toml").write_text("zookeeper = 'zk1:2181/ha'")
    with caplog.at_level(logging.INFO, "ha"):
        announce(gather({}, {"HA_FILES": "hdfs://nameservice1/ha"}))
    assert caplog.messages == ["The jobs are in hdfs://nameservice1/ha (HA_FILES), ZooKeeper is zk1:2181/ha (ha.toml)."]


def test_a_store_of_this_host_is_said_to_be_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "ha"):
        announce(gather({}, {"XDG_STATE_HOME": "/state"}))
    first, second = caplog.records
    assert first.getMessage() == (
        "The jobs are in file:///state/hybrid-ha/jobs (default), there is no ZooKeeper (default)."
    )
    assert second.levelno == logging.WARNING
    assert second.getMessage().startswith("file:///state/hybrid-ha/jobs guards this host alone: ")
