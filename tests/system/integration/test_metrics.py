"""Metrics on real stores, under faults of ZooKeeper and HDFS."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import CollectorRegistry

import ha
from ha.config.sources import load
from ha.daemon.process import ContendingProcess
from ha.leadership.notices import GrantNotice, NoticeQueue
from ha.sandbox import Sandbox
from leader.errors import NoLeader
from leader.layout.information import LeaderInformation, encode
from leader.layout.znodes import leader_path
from store.errors import StoreError
from store.zookeeper import Set, ZooKeeper
from tests.patience import PATIENCE_S
from tests.system.integration.waiting import until
from tests.unit.ha.led import session
from tests.unit.ha.metrics.exposition import Exposition

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]


class Contending:
    def __init__(self, job: str, name: str, stores: dict[str, str]) -> None:
        self.process = ContendingProcess(load({**stores, "contender": name, "session_timeout": 12.0}))
        self._job = job
        self._notices = NoticeQueue()
        self.process.join(job, self._notices)
        self.process.contend(job, {"jobmaster": "a:1"})

    def lead(self) -> "Contending":
        while not isinstance(notice := self._notices.get(PATIENCE_S), GrantNotice):
            assert notice is not None, "it does not lead"
        return self

    def value(self, name: str, /, **labels: str) -> float:
        return Exposition(self.process.metrics.registry).value(name, **labels)

    def shown(self, name: str) -> bool:
        families = Exposition(self.process.metrics.registry).families
        return any(sample.name == name for family in families for sample in family.samples)

    def of_job(self, name: str) -> float:
        return self.value(name, job_name=self._job)


@contextmanager
def contending(job: str, name: str, stores: dict[str, str]) -> Iterator[Contending]:
    made = Contending(job, name, stores)
    try:
        yield made
    finally:
        made.process.close()


@contextmanager
def hand(hosts: str) -> Iterator[ZooKeeper]:
    zookeeper = ZooKeeper(hosts, session_timeout=12.0)
    zookeeper.start()
    zookeeper.wait(PATIENCE_S)
    try:
        yield zookeeper
    finally:
        zookeeper.close()


def test_a_record_that_somebody_damages_lags_and_is_repaired(job: str, stores: dict[str, str]) -> None:
    old = encode(LeaderInformation(job, 1, session(1), {"jobmaster": "old:1"}))
    with contending(job, "a", stores) as first:
        first.lead()
    with contending(job, "b", stores) as leader, hand(stores["zookeeper"]) as somebody:
        leader.lead()
        until(lambda: leader.shown("ha_copy_lag_epochs"), "it has read its record")
        until(lambda: leader.of_job("ha_copy_lag_epochs") == 0, "ZooKeeper has the record of epoch 2")
        assert leader.of_job("ha_epoch") == 2

        def lags() -> bool:
            try:
                somebody.call(Set(leader_path(job), old, -1), PATIENCE_S)
            except StoreError:
                return False
            return leader.of_job("ha_copy_lag_epochs") == 1

        until(lags, "it has seen what somebody wrote; its pauses grow")
        until(lambda: leader.of_job("ha_copy_repairs_total"), "it has written it again")
        until(lambda: leader.of_job("ha_copy_lag_epochs") == 0, "and all is well")


def test_an_outage_of_zookeeper_shows(job: str, stores: dict[str, str], healed: Sandbox) -> None:
    with contending(job, "a", stores) as leader:
        leader.lead()
        until(lambda: leader.value("ha_zookeeper_attests") == 1, "ZooKeeper attests its session")
        assert leader.value("ha_zookeeper_state", state="connected") == 1
        counted = "ha_store_call_seconds_count"
        assert leader.value(counted, store="zookeeper", operation="sync", outcome="done") > 0
        assert leader.value("ha_namenode_operations_total", operation="rename") >= 2, "a seizure and a claim"
        healed.kill("zookeeper-1")
        until(lambda: leader.value("ha_zookeeper_state", state="connected") == 0, "the connection is gone")
        until(lambda: leader.value("ha_zookeeper_state", state="lost") == 1, "and the session")
        assert leader.value("ha_zookeeper_attests") == 0
        healed.up()
        until(lambda: leader.value("ha_zookeeper_state", state="connected") == 1, "it is back")


def test_lookups_count_by_source(job: str, stores: dict[str, str]) -> None:
    registry = CollectorRegistry()

    def counted(source: str) -> float:
        return Exposition(registry).value("ha_lookups_total", source=source, outcome="answered")

    with contending(job, "a", stores) as leader, ha.connect(registry, **stores) as client:

        def asked_zookeeper() -> float:
            with pytest.raises(NoLeader):
                client.leader(f"{job}-not")
            return Exposition(registry).value("ha_lookup_fallbacks_total", reason="no_node")

        assert until(asked_zookeeper, "ZooKeeper has answered that there is none") == 1
        leader.lead()
        until(lambda: leader.shown("ha_copy_lag_epochs"), "ZooKeeper has its record")
        client.leader(job, PATIENCE_S)
        client.leader(job, PATIENCE_S)
        assert counted("zookeeper") >= 1
        gets = {"store": "zookeeper", "operation": "get", "outcome": "done"}
        assert Exposition(registry).value("ha_store_call_seconds_count", **gets) >= 1
        assert Exposition(registry).value("ha_namenode_operations_total", operation="list") >= 1
