"""Contenders that borrow their host's session: who attests them, what that costs, and what they do without it."""

from itertools import pairwise

import pytest

from leader.election.borrowed_session import Lent
from leader.layout.lease import Mode
from leader.layout.znodes import session_path
from leader.timing import HEARD_AFTER, RENEWALS_PER_TTL, shared_confirmations
from tests.system.simulation.lending import Holder, Socket
from tests.system.simulation.process import Process
from tests.unit.leader.arena import TIMING, Arena

T = TIMING.session_timeout


class Host:
    """One host: a holder, and a leader that borrows from it; the standby `b` has a session of its own."""

    def __init__(self) -> None:
        self.arena = Arena()
        self.holder = self.begin()
        self.arena.run(T)  # its session settles
        self.leader = self.start("a")
        self.arena.run(1)
        self.standby = self.arena.start("b")
        self.arena.run(29)

    def begin(self) -> Holder:
        holder = Holder(self.arena.world, "h", self.arena.files, self.arena.ensemble, TIMING)
        return holder.start()

    def start(self, name: str) -> Process:
        process = Process(self.arena.world, name, self.arena.files, self.arena.ensemble, TIMING, borrows=True)
        self.arena.processes.append(process.start())
        Socket(process, lambda: self.holder)
        return process

    @property
    def by(self) -> str:
        return self.leader.contender.attested_by

    @property
    def own_nodes(self) -> list[str]:
        session = self.leader.client.session if self.leader.client is not None else None
        assert session is not None
        nodes = self.arena.zookeeper.nodes.items()
        return [path for path, node in nodes if path.startswith("/sessions/") and node.owner == session.id]

    @property
    def node(self) -> str:
        return session_path(self.arena.lease.attestation)


@pytest.fixture
def host() -> Host:
    return Host()


def test_the_host_attests_the_lease_and_the_own_session_is_not_confirmed(host: Host) -> None:
    assert (host.by, host.standby.contender.attested_by) == ("host", "own")
    assert host.arena.lease.mode is Mode.ZOOKEEPER
    session = host.holder.client.session if host.holder.client is not None else None
    assert session is not None
    assert host.arena.zookeeper.nodes[host.node].owner == session.id
    assert host.own_nodes == []
    assert host.arena.leaders() == [host.leader]


def test_confirmations_are_as_rare_as_each_can_prove_the_one_before() -> None:
    assert HEARD_AFTER * 1.01 < shared_confirmations(0.01) < HEARD_AFTER * 1.03


@pytest.mark.parametrize("how", ["crash", "pause", "part"])
def test_without_the_holder_the_leader_stays_and_confirms_its_own_session(host: Host, how: str) -> None:
    if how == "part":
        socket = host.leader.borrows_by
        assert socket is not None
        socket._find = lambda: None
        socket.end()
    else:
        getattr(host.holder, how)()
    host.arena.run(0.1)
    assert host.arena.lease.mode is (Mode.ZOOKEEPER if how == "pause" else Mode.HDFS)
    host.arena.run(2.5 * T)
    assert host.by == "own"
    assert host.arena.lease.mode is Mode.ZOOKEEPER
    assert host.arena.leaders() == [host.leader]
    assert len(host.leader.grants()) == 1


def test_it_waits_a_while_before_it_confirms_its_own_session(host: Host) -> None:
    host.holder.crash()
    host.arena.run(T / 4 - 0.1)
    assert host.own_nodes == []
    host.arena.run(T / 4 + 0.2)
    assert len(host.own_nodes) == 1


def test_it_goes_back_to_the_holder_that_comes_back(host: Host) -> None:
    host.holder.crash()
    host.arena.run(2 * T)
    assert host.by == "own"
    host.holder = host.begin()
    host.arena.until(lambda: host.by == "host", T)
    host.arena.run(1)
    assert host.arena.lease.attestation.startswith(host.leader.participant().election.state.attestation.token or "-")
    assert host.arena.leaders() == [host.leader]
    assert len(host.leader.grants()) == 1


def test_a_member_that_came_while_zookeeper_was_away_gets_its_node_later(host: Host) -> None:
    host.holder.crash()
    host.arena.zookeeper_down()
    host.holder = host.begin()
    host.arena.run(1)
    assert host.holder.holder.members == 1
    host.arena.zookeeper_up()
    host.arena.until(lambda: host.by == "host", 3 * T)
    assert host.arena.leaders() == [host.leader]


def test_a_leader_whose_own_connection_is_lost_goes_on_by_hdfs(host: Host) -> None:
    host.leader.cut_off_zookeeper()
    host.arena.run(0.1)
    assert host.by == ""
    assert host.arena.lease.mode is Mode.HDFS
    assert host.arena.leaders() == [host.leader]


def test_the_node_of_a_process_that_has_ended_goes_when_its_belief_has_ended(host: Host) -> None:
    node, holds_until = host.node, host.leader.true(host.leader.participant().election.state.holds_until())
    host.leader.crash()
    host.arena.run(holds_until - host.arena.world.now - 0.01)
    assert node in host.arena.zookeeper.nodes
    host.arena.run(0.1)
    assert node not in host.arena.zookeeper.nodes
    leader, _ = host.arena.until_leader(1)
    assert leader is host.standby
    assert host.holder.holder.members == 0


def test_a_longer_session_than_the_own_one_is_not_relied_on(host: Host) -> None:
    """Others wait no longer than their own timeout for a lease whose node is gone."""
    session, now = host.leader.participant().election.state.attestation, host.leader.now()
    assert session.token is not None
    host.leader.contender.lent(Lent(session.token, now + 2 * T, now, T + 0.001))
    assert host.by == ""
    host.leader.contender.lent(Lent(session.token, now + T, now, T))
    assert host.by == "host"


def test_what_is_lent_to_one_that_does_not_borrow_is_nothing(host: Host) -> None:
    now = host.standby.now()
    host.standby.contender.lent(Lent("cafe0123-1-1", now + T, now, T))
    assert host.standby.contender.attested_by == "own"


def test_a_standby_asks_about_a_node_that_is_watched_once_in_a_long_ttl(host: Host) -> None:
    asked: list[float] = []
    rival = host.standby.participant().election.state.rival
    on_checked = rival.on_checked

    def count(token: str, present: bool | None, now: float) -> None:  # as the method has it
        asked.append(now)
        on_checked(token, present, now)

    rival.on_checked = count  # type: ignore[method-assign]
    host.arena.run(5 * TIMING.long_ttl)
    # it looks when the lease is renewed, and asks with the first look after the time
    assert 4 <= len(asked) <= 5
    assert min(b - a for a, b in pairwise(asked)) >= TIMING.long_ttl
    assert max(b - a for a, b in pairwise(asked)) <= TIMING.long_ttl * (1 + 1 / RENEWALS_PER_TTL)
