"""Metrics of lookups: a client with the program's own registry, over real files."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

import ha
from ha.agent.standalone import agent_of, reader_of
from ha.client import Client
from ha.config.settings import Settings
from ha.config.sources import load
from ha.config.stores import Stores
from leader.errors import InvalidName, InvalidSettings, NoLeader, Unreachable
from leader.lookup.reader import Reader
from store.errors import NotSent
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.ha.led import Led, session
from tests.unit.ha.metrics.exposition import Exposition
from tests.unit.ha.waiting import wait_until

LOOKUPS = "ha_lookups_total"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def client(led: Led, registry: CollectorRegistry) -> Iterator[Client]:
    del led
    with ha.connect(registry) as made:
        yield made


def counted(registry: CollectorRegistry, source: str, outcome: str) -> float:
    return Exposition(registry).value(LOOKUPS, source=source, outcome=outcome)


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: LocalFiles, __: str) -> None:
        raise NotSent("broken on purpose")

    monkeypatch.setattr(LocalFiles, "list", refuse)


def test_a_lookup_counts_by_who_answered(led: Led, client: Client, registry: CollectorRegistry) -> None:
    led.claim("orders", "a:1")
    client.leader("orders")
    client.leader("orders")
    client.report("orders", session(1))
    assert counted(registry, "hdfs", "answered") == 3
    shown = Exposition(registry)
    assert shown.value("ha_lookup_seconds_count", source="hdfs") == 3
    assert shown.value("ha_lookup_fallbacks_total", reason="none") >= 3, "no ZooKeeper is configured"
    assert shown.value("ha_store_call_seconds_count", store="files", operation="lookup", outcome="done") >= 3


def test_a_lookup_without_an_answer_counts_by_why(
    led: Led, client: Client, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoLeader):
        client.leader("nothing")
    assert counted(registry, "none", "no_leader") == 1
    led.claim("orders", "a:1")
    client.leader("orders")
    broken(monkeypatch)
    with pytest.raises(Unreachable):
        client.leader("orders", 0.2)
    assert counted(registry, "none", "unreachable") == 1
    assert client.leader("orders", 0.2, stale=True).stale
    assert counted(registry, "hdfs", "stale") == 1
    with pytest.raises(InvalidName):
        client.leader("no job's name")
    assert (
        sum(each.value for family in Exposition(registry).families for each in family.samples if each.name == LOOKUPS)
        == 4
    )


def test_changes_are_the_epochs_that_hdfs_told_of(led: Led, client: Client, registry: CollectorRegistry) -> None:
    def changes() -> float:
        return Exposition(registry).value("ha_leader_changes_total", job_name="orders")

    led.claim("orders", "a:1")
    client.leader("orders")
    assert changes() == 0, "the first one is no change"
    assert {"job_name"} == Exposition(registry).labels()["ha_leader_changes_total"], "and yet it is shown"
    led.claim("orders", "b:1")
    led.claim("orders", "c:1")
    client.leader("orders")
    client.leader("orders")
    assert changes() == 2


def test_a_watch_counts_what_it_tells_and_takes_no_time(led: Led, client: Client, registry: CollectorRegistry) -> None:
    led.claim("orders", "a:1")
    told = client.watch("orders")
    assert next(told) is not None
    led.claim("orders", "b:1")
    assert next(told) is not None
    assert counted(registry, "hdfs", "answered") == 2
    assert Exposition(registry).value("ha_lookup_seconds_count", source="hdfs") == 0


def test_a_lookup_that_an_agent_answers_is_of_a_snapshot(led: Led, registry: CollectorRegistry, tmp_path: Path) -> None:
    settings = load({"snapshots": str(tmp_path / "snapshots"), "audit": 200.0})
    led.claim("orders", "a:1")
    stores = Stores(settings)
    agent = agent_of(stores, reader_of(stores), ["orders"])
    agent.start()
    try:
        wait_until(lambda: list((tmp_path / "snapshots").glob("*/leader-orders")), what="it has written")
        with Client(settings, registry=registry) as client:
            client.leader("orders")
            assert counted(registry, "snapshot", "answered") == 1
            assert Exposition(registry).value("ha_lookup_seconds_count", source="snapshot") == 1
    finally:
        agent.close()
        stores.close()


@pytest.mark.parametrize("reason", ["error", "no_node", "mismatch", "undecodable", "none", "something new"])
def test_fallbacks_are_the_readers_count(led: Led, client: Client, registry: CollectorRegistry, reason: str) -> None:
    del led
    assert isinstance(client._reader, Reader)
    client._reader.fallbacks[reason] = 5
    shown = Exposition(registry)
    assert shown.value("ha_lookup_fallbacks_total", reason=reason) == 5
    assert "error" in {
        each.labels["reason"] for family in shown.families for each in family.samples if "reason" in each.labels
    }


def test_one_registry_is_one_clients(client: Client, registry: CollectorRegistry, quick: Path) -> None:
    del client, quick
    with pytest.raises(InvalidSettings, match="another client"):
        ha.connect(registry)


def test_lookups_from_many_threads_are_all_counted(led: Led, client: Client, registry: CollectorRegistry) -> None:
    led.claim("orders", "a:1")
    client.leader("orders")
    threads = [
        threading.Thread(target=lambda: [client.leader("orders", PATIENCE_S) for _ in range(25)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert counted(registry, "hdfs", "answered") == 101


def test_a_client_with_a_registry_reads_its_settings(led: Led, registry: CollectorRegistry) -> None:
    del led
    with ha.connect(registry, audit=12.0) as client:
        assert isinstance(client.settings, Settings)
        assert client.settings.leadership.audit == 12.0
