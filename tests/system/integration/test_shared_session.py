"""One session of a host attests for all: a real agent lends, real contenders borrow, and no leader moves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ha.agent.standalone import StandaloneAgent
from ha.config.sources import load
from ha.config.stores import Stores
from ha.daemon.process import ContendingProcess
from ha.doctor.finding import Level
from ha.doctor.host import check_lender
from ha.leadership.notices import NoticeQueue
from leader.layout.lease import Mode
from leader.layout.tree import read
from leader.layout.znodes import session_path
from store.zookeeper import Get
from tests.patience import PATIENCE_S
from tests.system.integration.waiting import until

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]


@pytest.fixture
def settings(stores: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**stores, "zookeeper_session": "host", "snapshots": str(tmp_path / "snapshots"), "session_timeout": "12"}


@contextmanager
def agent(settings: dict[str, str]) -> Iterator[StandaloneAgent]:
    made = StandaloneAgent(load({**settings, "contender": "agent"}))
    try:
        yield made
    finally:
        made.close()


@contextmanager
def contending(job: str, settings: dict[str, str], name: str) -> Iterator[ContendingProcess]:
    made = ContendingProcess(load({**settings, "contender": name}))
    try:
        made.join(job, NoticeQueue())
        made.contend(job, {"jobmaster": f"{name}:6123"})
        yield made
    finally:
        made.close()


def shown(process: ContendingProcess, job: str) -> dict[str, Any]:
    return process.statuses()[job]


def test_a_leader_borrows_goes_on_alone_and_borrows_again(job: str, settings: dict[str, str]) -> None:
    place = Stores(load(settings)).snapshots
    assert check_lender(place).level is Level.WARNING
    with contending(job, settings, "a") as leader:
        with agent(settings):
            until(lambda: shown(leader, job)["is_leader"], "it leads")
            until(lambda: shown(leader, job)["attested_by"] == "host", "its host's session attests it")
            until(lambda: shown(leader, job)["lease"]["mode"] == "zookeeper", "and its lease")
            assert check_lender(place).level is Level.OK
            _, record = leader.stores.files.call("read", lambda driver: read(driver, job), PATIENCE_S)
            assert record.lease is not None
            assert record.lease.mode is Mode.ZOOKEEPER
            zookeeper = leader.stores.zookeeper
            assert zookeeper is not None
            assert zookeeper.session is not None
            data, node = zookeeper.call(Get(session_path(record.lease.attestation)), PATIENCE_S)
            assert (data, node.ephemeral_owner != zookeeper.session.id) == (b"a", True)
        until(lambda: shown(leader, job)["attested_by"] == "own", "it confirms its own session")
        assert check_lender(place).level is Level.WARNING
        with agent(settings):
            until(lambda: shown(leader, job)["attested_by"] == "host", "it borrows again")
            assert shown(leader, job)["epoch"] == 1
            with contending(job, settings, "b") as standby:
                until(lambda: shown(standby, job)["attested_by"] == "host", "so does a standby")
                assert not shown(standby, job)["is_leader"]
