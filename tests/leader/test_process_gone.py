"""Standbys that watch the leader's process: its end is enough, and nothing else is."""

import pytest

from leader.errors import InvalidName
from leader.events import ProcessGone
from leader.lease import Mode
from tests.leader.arena import TIMING, Arena
from tests.simulation.process import Process

AT_ONCE = 0.5


@pytest.fixture
def arena() -> Arena:
    return Arena(suspicion=True)


def reasons(process: Process) -> list[str]:
    return [grant.reason for grant in process.grants()]


def suspected(*processes: Process) -> list[object]:
    return [what for process in processes for _, kind, what in process.history if kind == "suspected"]


def test_a_process_that_ends_is_succeeded_at_once(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    token = arena.lease.attestation
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby
    assert reasons(standby) == ["process-gone"]
    assert suspected(standby) == ["orders: a"]
    assert f"/sessions/{token}" in arena.zookeeper.nodes, "ZooKeeper does not know yet"
    arena.run(40)
    assert arena.leaders() == [standby]


def test_a_standby_that_has_just_come_sees_it_as_well(arena: Arena) -> None:
    """Seen on real hosts: one that was 5 s old took over when ZooKeeper had ended the session, after 9.5 s."""
    (leader,) = arena.start_led()
    standby = arena.start("b")
    arena.run(TIMING.renewal)
    assert not standby.candidacy().election.attestation.usable, "its own session has not settled"
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby
    assert reasons(standby) == ["process-gone"]
    arena.run(30)
    assert arena.lease.mode is Mode.ZOOKEEPER


def test_one_of_many_standbys_succeeds_and_all_watch_the_next_one(arena: Arena) -> None:
    processes = list(arena.start_led("b", "c", "d"))
    while len(processes) > 1:
        leader = arena.leaders()[0]
        leader.crash()
        processes.remove(leader)
        assert arena.until_leader(AT_ONCE)[0] in processes
        arena.run(30)
    assert arena.lease.mode is Mode.ZOOKEEPER
    assert arena.directory.epoch == 4


def test_a_lost_host_takes_the_session_timeout(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    leader.lose()
    _, took = arena.until_leader(TIMING.session_timeout + 1)
    assert took > TIMING.session_timeout / 2
    assert reasons(standby) == ["session-gone"]


def test_a_renewal_that_the_standby_has_not_seen_makes_no_difference(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    seen = standby.candidacy().election.lease
    arena.until(lambda: arena.lease != seen, TIMING.long_ttl)
    assert standby.candidacy().election.lease == seen
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby


def test_without_zookeeper_it_is_seen_as_well(arena: Arena) -> None:
    """The lease still says that ZooKeeper attests it: without this, it takes the long ttl."""
    leader, standby = arena.start_led("b")
    leader.crash()
    arena.zookeeper_down()
    assert arena.until_leader(AT_ONCE)[0] is standby
    assert reasons(standby) == ["process-gone"]


@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_a_pause_is_no_end_whatever_becomes_of_the_connections(arena: Arena, seconds: float) -> None:
    leader, standby = arena.start_led("b")
    assert arena.wires is not None
    leader.pause()
    arena.wires.reset(leader)
    arena.run(seconds)
    leader.resume()
    arena.run(30)
    assert arena.leaders() == [leader]
    assert suspected(standby) == []


def test_a_cut_is_no_end(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    assert arena.wires is not None
    arena.wires.reset(leader)
    leader.peers.there = False
    arena.run(30)
    leader.peers.there = True
    arena.run(60)
    assert arena.leaders() == [leader]
    assert suspected(standby) == []
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby, "it has been met again"


def test_an_address_that_leads_elsewhere_costs_nothing_but_time(arena: Arena) -> None:
    assert arena.wires is not None
    arena.wires.misled.add("a")
    leader, standby = arena.start_led("b")
    arena.run(60)
    assert arena.leaders() == [leader]
    leader.crash()
    arena.until_leader(TIMING.session_timeout + 1)
    assert reasons(standby) == ["session-gone"]


def test_a_leader_that_leads_by_hdfs_alone_is_not_seized_whatever_was_heard(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    token = arena.lease.attestation
    arena.zookeeper_down()
    arena.until(lambda: arena.lease.mode is Mode.HDFS, 5.0)
    arena.run(TIMING.renewal + TIMING.poll)
    for told in (token, ""):
        standby.candidacy().send(ProcessGone(told))
    arena.run(TIMING.short_ttl * 2)
    assert arena.leaders() == [leader]
    assert suspected(standby) == []


def test_an_error_moves_one_leadership_and_not_the_next_one_of_the_same_process(arena: Arena) -> None:
    """Wrong once, which is fenced at the store; but who is granted a lease after that is not gone."""
    leader, standby, third = arena.start_led("b", "c")
    token = arena.lease.attestation
    arena.overlap = 0.0
    for each in (standby, third):
        each.candidacy().send(ProcessGone(token))
    arena.run(5)
    (successor,) = arena.leaders()
    assert successor is not leader
    other = third if successor is standby else standby
    arena.overlap = None
    arena.run(30)
    other.contender.release("orders")
    successor.crash()
    assert arena.until_leader(AT_ONCE)[0] is leader
    other.contender.contend("orders")
    arena.run(30)
    assert arena.lease.attestation == token
    arena.run(60)
    assert arena.leaders() == [leader], "it is the same process, with the same session, and it lives"
    assert len(suspected(other)) == 1


def test_a_standby_that_does_not_contend_watches_nobody(arena: Arena) -> None:
    _, standby = arena.start_led("b")
    assert standby.candidacy().election.rival == arena.lease.attestation
    standby.contender.release("orders")
    assert standby.candidacy().election.rival is None
    standby.contender.contend("orders")
    arena.run(5)
    assert standby.candidacy().election.rival == arena.lease.attestation


def test_who_leaves_a_job_watches_nobody_any_more(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    standby.contender.leave("orders")
    leader.crash()
    arena.run(20)
    assert arena.leaders() == []
    with pytest.raises(KeyError):
        standby.candidacy()
    with pytest.raises(InvalidName):
        leader.contender.join("orders", leader)
