"""Retrieval: readers and leaders on a local directory and a real ZooKeeper server that comes and goes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ha
from leader.errors import NoLeader
from leader.layout.information import decode
from leader.layout.znodes import leader_path
from leader.lookup.answers import Answer
from store.errors import NotFound
from store.zookeeper import Children, Create, Delete, Event, Exists, Get, Kind, Set, Sync, ZooKeeper
from tests.patience import PATIENCE_S
from tests.system.flink_scenarios.conftest import mode
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import Heard, Server, connected, submit

pytestmark = [pytest.mark.zookeeper]


class Watch:
    def __init__(self, client: ha.Client) -> None:
        self.answers: list[Answer | None] = []
        self.news = threading.Condition()
        self.thread = threading.Thread(target=self._run, args=(client,), daemon=True)
        self.thread.start()

    def _run(self, client: ha.Client) -> None:
        for answer in client.watch("orders"):
            with self.news:
                self.answers.append(answer)
                self.news.notify_all()

    @property
    def found(self) -> list[tuple[int, str]]:
        return [(answer.epoch, answer.endpoints["rest"]) for answer in self.answers if answer]

    def until(self, condition: Callable[[], bool]) -> None:
        with self.news:
            assert self.news.wait_for(condition, PATIENCE_S), self.answers


@contextmanager
def watching(**settings: str) -> Iterator[Watch]:
    """Run a watch until its client is closed; it yields nothing then. Leave the block when all answers are in."""
    with ha.connect(**settings) as client:
        watch = Watch(client)
        yield watch
        before = len(watch.answers)
    watch.thread.join(PATIENCE_S)
    assert not watch.thread.is_alive()
    assert len(watch.answers) == before


def settle(jobs: Path, how: str = "zookeeper") -> None:
    wait_until(lambda: mode(jobs) == how, what=f"the lease is in mode {how}")


@pytest.fixture
def zookeeper(server: Server, request: pytest.FixtureRequest) -> Iterator[ZooKeeper]:
    with connected(f"{server.hosts}/{request.node.name}") as client:
        yield client


@pytest.fixture
def address(server: Server, request: pytest.FixtureRequest) -> str:
    return f"{server.hosts}/{request.node.name}"


def test_what_a_leader_confirms_is_what_readers_find_each_time(jobs: Path, zookeeper: ZooKeeper, address: str) -> None:
    with ha.connect(zookeeper=address) as client:
        with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S, zookeeper=address) as leadership:
            for rest in ("a:1", "a:2", "a:3"):
                leadership.confirm({"rest": rest})
                wait_until(lambda rest=rest: client.leader("orders").endpoints["rest"] == rest)  # type: ignore[misc]
                wait_until(lambda: client.leader("orders").source.value == "zookeeper")
                answer = client.leader("orders")
                assert (answer.epoch, answer.session_id) == (leadership.epoch, leadership.session_id)
                information = decode(zookeeper.call(Get(leader_path("orders")), PATIENCE_S)[0], "orders")
                assert information is not None
                assert dict(information.endpoints) == {"rest": rest}
            assert len(zookeeper.call(Children("/sessions"), PATIENCE_S)) == 1
        wait_until(lambda: not zookeeper.call(Children("/sessions"), PATIENCE_S))
        with pytest.raises(NotFound):
            zookeeper.call(Get(leader_path("orders")), PATIENCE_S)
        assert zookeeper.call(Children("/jobs/orders/contenders"), PATIENCE_S) == []
        with pytest.raises(NoLeader):
            client.leader("orders", 0.5)
    assert jobs.exists()


def test_a_program_busy_with_its_grant_does_not_delay_its_copy(jobs: Path, zookeeper: ZooKeeper, address: str) -> None:
    with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S, zookeeper=address):
        settle(jobs)
        path = leader_path("orders")
        wait_until(lambda: zookeeper.call(Exists(path), PATIENCE_S))
        good = zookeeper.call(Get(path), PATIENCE_S)[0]

        def repaired() -> bool:
            found = zookeeper.call(Exists(path), PATIENCE_S)
            return found is not None and zookeeper.call(Get(path), PATIENCE_S)[0] == good

        # This thread is the program's: it only looks.
        zookeeper.call(Set(path, b"theirs", -1), PATIENCE_S)
        wait_until(repaired)
        zookeeper.call(Delete(path, -1), PATIENCE_S)
        wait_until(repaired)
        assert zookeeper.call(Get(path), PATIENCE_S)[0] == good


def test_a_watch_hears_of_its_own_node_and_of_none_of_its_neighbours(zookeeper: ZooKeeper) -> None:
    heard, path = Heard(), leader_path("orders")
    zookeeper.call(Create("/jobs/orders", make_parents=True), PATIENCE_S)
    for neighbour in ("/jobs/orders", "/jobs", "/jobs/orders/leader2", "/jobs/orders/leade", "/jobs/orders2/leader"):
        zookeeper.call(Exists(path, watch=heard), PATIENCE_S)
        if zookeeper.call(Exists(neighbour), PATIENCE_S):
            zookeeper.call(Set(neighbour, b"changed", -1), PATIENCE_S)
        else:
            zookeeper.call(Create(neighbour, b"made", make_parents=True), PATIENCE_S)
            zookeeper.call(Delete(neighbour, -1), PATIENCE_S)
    zookeeper.call(Create(path, b"1"), PATIENCE_S)
    zookeeper.call(Exists(path, watch=heard), PATIENCE_S)
    zookeeper.call(Create(f"{path}/below"), PATIENCE_S)
    zookeeper.call(Delete(f"{path}/below", -1), PATIENCE_S)
    submit(zookeeper, Sync("/"), PATIENCE_S)  # any other event would have come before this one
    assert heard.all == [Event(Kind.CREATED, path)]


def test_a_watch_through_an_outage_tells_what_changed_and_no_more(jobs: Path, server: Server, address: str) -> None:
    with watching(zookeeper=address) as watch:
        watch.until(lambda: watch.answers == [None])
        with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S, zookeeper=address, contender="a") as first:
            watch.until(lambda: watch.found == [(1, "a:1")])
            settle(jobs)

            server.kill()
            settle(jobs, "hdfs")
            assert first.is_leader()
            assert watch.answers[-1] is not None, "an outage of ZooKeeper is no reason to say that nobody leads"

            first.resign()
            with ha.lead("orders", {"rest": "b:1"}, timeout=PATIENCE_S, zookeeper=address, contender="b") as second:
                watch.until(lambda: (2, "b:1") in watch.found)
                server.up()
                settle(jobs)
                second.confirm({"rest": "b:2"})
                watch.until(lambda: (2, "b:2") in watch.found)
                assert watch.found == [(1, "a:1"), (2, "b:1"), (2, "b:2")], "nobody is announced twice"
        watch.until(lambda: watch.answers[-1] is None)


def test_a_watch_that_begins_in_an_outage_announces_the_leader_once(jobs: Path, server: Server, address: str) -> None:
    server.kill()
    with watching(zookeeper=address) as early:
        early.until(lambda: early.answers == [None])
        with ha.lead("orders", {"rest": "a:1"}, timeout=PATIENCE_S, zookeeper=address):
            early.until(lambda: early.found == [(1, "a:1")])
            with watching(zookeeper=address) as late:
                late.until(lambda: len(late.answers) == 1)
                server.up()
                settle(jobs)
            assert late.found == early.found == [(1, "a:1")]
            assert late.answers[0] is not None, "who comes later hears of the leader at once"
        early.until(lambda: early.answers[-1] is None)
