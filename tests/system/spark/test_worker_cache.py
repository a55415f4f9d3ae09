"""The time that a Python worker's first lookup leaves for the stores."""

import pytest

from ha.client import Client
from ha.spark import worker
from ha.spark.worker import CachingClient
from leader.lookup.answers import Answer, Source
from tests.unit.leader.lookup.test_cached_answer import FakeZooKeeper, stores_of
from tests.unit.leader.lookup.ticking import Hand


def test_stores_have_their_time_also_if_imports_have_taken_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hundreds of workers start on one host, kazoo's import takes seconds, for which no store is to blame."""
    clock = Hand()
    monkeypatch.setattr(worker, "now", clock.now)
    zookeeper, given = FakeZooKeeper(), []

    def start() -> None:
        clock.at += 5.0

    def leader(_: Client, job: str, timeout: float) -> Answer:
        given.append((job, timeout))
        return Answer(job, 1, "x", {}, Source.ZOOKEEPER, 0.0, verified=True)

    vars(zookeeper).update(start=start, wait=lambda timeout: timeout)
    monkeypatch.setattr(Client, "cached_leader", lambda *_: None)
    monkeypatch.setattr(Client, "leader", leader)
    client = CachingClient((("files", "file:///x"),))
    client.close()
    vars(client._stores).update(zookeeper=zookeeper)
    client._reader.stores = stores_of(zookeeper, clock)
    assert client.leader("orders").epoch == 1
    [(job, timeout)] = given
    assert job == "orders"
    assert 1.0 < timeout <= worker.LOOKUP_TIMEOUT_S


def test_the_lookup_before_a_checkpoint_leaves_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[tuple[str, float]]()

    def leader(_: CachingClient, job: str, timeout: float) -> None:
        given.append((job, timeout))

    monkeypatch.setattr(CachingClient, "leader", leader)
    monkeypatch.setattr(Client, "checkpoint", lambda _, job, timeout: given.append((job, timeout)))
    client = CachingClient((("files", "file:///x"),))
    client.close()
    client._ask_checkpoint("orders", 0.5)
    assert given == [("orders", 0.25), ("orders", pytest.approx(0.5, abs=0.1))]
