"""Costs: the requests that readers make to the stores, counted in virtual time with production's own code."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from leader.errors import NoLeader, Unreachable
from leader.timing import Timing
from tests.system.simulation.client import Client
from tests.system.simulation.executor import Executor
from tests.system.simulation.hands import Hands
from tests.system.simulation.host import Host
from tests.system.simulation.plan import AGENT, Plan, Step
from tests.system.simulation.sidecar import JOB
from tests.system.simulation.system import System

READERS = ("r0", "r1", "r2", "r3")
SETTLED = 60.0
"""Seconds after which everybody has looked, and been audited once."""


class Costs:
    """Requests that were sent, by host."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.hands = Hands(system)
        self.files: Counter[str] = Counter()
        self.zookeeper: Counter[str] = Counter()

    def over(self, seconds: float) -> tuple[Counter[str], Counter[str]]:
        """Let that time pass; return the requests to HDFS and to ZooKeeper during it."""
        self.files.clear()
        self.zookeeper.clear()
        self.system.world.run(seconds)
        return Counter(self.files), Counter(self.zookeeper)


@pytest.fixture(autouse=True)
def _leaders_only() -> Iterator[None]:
    """Leave out checkpoints, whose costs are counted separately."""
    with patch.object(Executor, "_read_checkpoints", lambda _: None):
        yield


@contextmanager
def counted(*, agent: bool, audit: float = 30.0, servers: int = 3) -> Iterator[Costs]:
    """A job with two contenders, three ZooKeeper servers and four readers, after everything has settled."""
    plan = Plan(seed=1, timing=Timing(), servers=servers, tick=2.0, readers=len(READERS), agent=agent, audit=audit)
    system = System(plan)
    costs = Costs(system)
    send, request = Host.send, Client.request
    clients = {id(host.client): name for name, host in system.hosts.items()}

    def count_files(self: Host, *given: Any) -> None:
        costs.files[self.name] += 1
        send(self, *given)

    def count_zookeeper(self: Client, *given: Any) -> None:
        owner = next((each.name for each in system.hosts.values() if each.client is self), clients.get(id(self), ""))
        costs.zookeeper[owner] += 1
        request(self, *given)

    with patch.object(Host, "send", count_files), patch.object(Client, "request", count_zookeeper):
        try:
            system.world.run(SETTLED)
            assert system.leader is not None
            yield costs
        finally:
            system.tasks.end()


@pytest.mark.parametrize("agent", [True, False], ids=["with an agent", "without"])
def test_while_all_is_well_a_host_asks_the_namenode_twice_a_minute_for_a_job(agent: bool) -> None:
    with counted(agent=agent) as costs:
        files, _ = costs.over(600)
    assert 18 <= files[AGENT] <= 20, "an audit every 30 s"
    others = [files[name] for name in READERS if name != AGENT]
    assert others == [0, 0, 0] if agent else max(others) <= 20


def test_an_agent_does_not_ask_zookeeper_again_while_its_watch_stands() -> None:
    """Its own lookups, and those of checkpoints, are left out: here the agent only keeps one job warm."""
    with counted(agent=True) as costs, patch.object(Executor, "_work", lambda *_: None):
        costs.hands.take(Step(0.0, "crash", AGENT, 1.0))
        costs.over(SETTLED)
        _, zookeeper = costs.over(600)
    assert 0 < zookeeper[f"{AGENT}.2"] <= 60, "every 15 s or so, and an answer is passed on every second"


@pytest.mark.parametrize("agent", [True, False], ids=["with an agent", "without"])
def test_while_zookeeper_is_away_a_host_asks_less_than_once_in_two_seconds(agent: bool) -> None:
    with counted(agent=agent) as costs:
        costs.hands.take(Step(0.0, "outage", "", 90.0))
        files, _ = costs.over(60)
    assert 1 <= files[AGENT] <= 30
    others = [files[name] for name in READERS if name != AGENT]
    assert sum(others) == 0 if agent else max(others) <= 30


def test_an_agent_that_contradicts_a_reader_has_it_audit_once() -> None:
    """An infinite time would have made it audit at every lookup."""
    with counted(agent=False) as costs:
        for name in READERS:
            reader = costs.system.hosts[name]
            assert isinstance(reader, Executor)
            reader._reader._lookup(JOB)._hdfs.audit_soon()
        files, _ = costs.over(600)
    assert all(20 <= files[name] <= 22 for name in READERS), files


@pytest.mark.parametrize("agent", [True, False], ids=["with an agent", "without"])
def test_a_failover_costs_a_host_one_list_by_which_the_new_address_is_verified(agent: bool) -> None:
    with counted(agent=agent, audit=10_000) as costs:
        before = costs.system.leader
        assert before is not None
        costs.hands.take(Step(0.0, "crash", before.name, 100.0))
        files, _ = costs.over(30)
        after = costs.system.leader
        assert after is not None
        assert after.name != before.name
    assert {name: files[name] for name in READERS} == {name: int(name == AGENT or not agent) for name in READERS}


def test_a_stranger_that_rewrites_the_record_costs_a_host_little() -> None:
    """Audits are left out. Half of the forgeries are of a higher epoch, and the others of the present session."""
    with counted(agent=True, audit=10_000) as costs:
        for number in range(600):
            step = Step(number * 0.1, "forge", "", 0.0, ("forged endpoints" if number % 2 else "forged epoch",))
            costs.system.world.after(step.at, partial(costs.hands.take, step))
        files, _ = costs.over(60)
    assert 0 < files[AGENT] <= 60
    assert sum(files[name] for name in READERS) == files[AGENT]


def test_an_audit_is_one_list_after_a_failover_too() -> None:
    """ZooKeeper's record names the leader directory, so no reader has to search for it."""
    with counted(agent=True) as costs:
        before = costs.system.leader
        assert before is not None
        costs.hands.take(Step(0.0, "crash", before.name, 100.0))
        files, _ = costs.over(600)
    assert 19 <= files[AGENT] <= 21, "one of them verified the new leader"


def test_while_zookeeper_is_away_checkpoints_are_asked_for_as_seldom() -> None:
    def ask(self: Executor, timeout: float) -> None:
        while True:
            with suppress(NoLeader, Unreachable):
                self._checkpoints.checkpoint(JOB, timeout)
            self._clock.sleep(0.1)

    with patch.object(Executor, "_work", ask), counted(agent=False) as costs:
        costs.hands.take(Step(0.0, "outage", "", 90.0))
        files, _ = costs.over(60)
    assert 1 <= max(files[name] for name in READERS) <= 30


@pytest.mark.parametrize("servers", [0, 3], ids=["without ZooKeeper", "with ZooKeeper"])
@pytest.mark.parametrize("audit", [10.0, 30.0])
def test_while_nobody_leads_only_the_agent_asks(servers: int, audit: float) -> None:
    """What it writes then ends soon. An agent that is awake replaces it in time, so no other process has to ask.

    Its own lookups are left out: the agent only keeps one job warm.
    """
    work = Executor._work

    def others(self: Executor, timeout: float) -> None:
        if self.name != AGENT:
            work(self, timeout)

    with patch.object(Executor, "_work", others), counted(agent=True, audit=audit, servers=servers) as costs:
        for name in costs.system.plan.contenders:
            costs.hands.take(Step(0.0, "crash", name, 1000.0))
        costs.over(SETTLED)
        files, _ = costs.over(600)
    assert 200 <= files[AGENT] <= 250, "every 2.4 s"
    assert sum(files[name] for name in READERS) == files[AGENT]
