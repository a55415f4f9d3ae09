"""Standbys that probe the leader's process: only its proven end lets them seize the lease early."""

import pytest

from leader.election.events import MakeDirectory, ProcessGone, Rename
from leader.errors import InvalidName
from leader.layout.contact import ContactAddress, ContactEntry
from leader.layout.lease import Mode
from leader.layout.tree import NOBODY
from tests.system.simulation.host import Fault, Host
from tests.unit.leader.arena import TIMING, Arena, arenas, heard, reasons

ARENAS = arenas(suspicion=True)

AT_ONCE = 0.5


def test_a_process_that_ends_is_succeeded_at_once(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    token = arena.lease.attestation
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby
    assert reasons(standby) == ["process-gone"]
    assert heard(standby, "suspected") == ["orders: a"]
    assert f"/sessions/{token}" in arena.zookeeper.nodes, "ZooKeeper does not know yet"
    arena.run(40)
    assert arena.leaders() == [standby]


def test_a_standby_that_has_just_started_detects_the_end_as_well(arena: Arena) -> None:
    """Seen on real hosts: a standby that was 5 s old took over after 9.5 s, when ZooKeeper had ended the session."""
    (leader,) = arena.start_led()
    standby = arena.start("b")
    arena.run(TIMING.renewal)
    assert not standby.participant().election.state.attestation.usable, "its own session has not settled"
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
    seen = standby.participant().election.state.lease
    arena.until(lambda: arena.lease != seen, TIMING.long_ttl)
    assert standby.participant().election.state.lease == seen
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby


def test_without_zookeeper_the_end_is_detected_as_well(arena: Arena) -> None:
    """The lease still says that ZooKeeper attests it, so without the probe a takeover takes the long ttl."""
    leader, standby = arena.start_led("b")
    leader.crash()
    arena.zookeeper_down()
    assert arena.until_leader(AT_ONCE)[0] is standby
    assert reasons(standby) == ["process-gone"]


@pytest.mark.parametrize("seconds", [1.0, 3.0])
def test_a_pause_is_no_end_even_if_connections_break(arena: Arena, seconds: float) -> None:
    leader, standby = arena.start_led("b")
    assert arena.wires is not None
    leader.pause()
    arena.wires.reset(leader)
    arena.run(seconds)
    leader.resume()
    arena.run(30)
    assert arena.leaders() == [leader]
    assert heard(standby, "suspected") == []


def test_a_cut_is_no_end(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    assert arena.wires is not None
    arena.wires.reset(leader)
    leader.peers.there = False
    arena.run(30)
    leader.peers.there = True
    arena.run(60)
    assert arena.leaders() == [leader]
    assert heard(standby, "suspected") == []
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


def test_while_zookeeper_is_away_the_end_is_detected_as_fast(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.until(lambda: arena.lease.mode is Mode.HDFS, 5.0)
    arena.run(3 * TIMING.short_ttl)
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby
    assert reasons(standby) == ["process-gone"]


@pytest.mark.parametrize("zookeeper", [True, False])
def test_a_leader_that_is_three_seconds_old_is_succeeded_as_fast(zookeeper: bool) -> None:
    """Its session has not settled, so HDFS alone carries its lease."""
    arena = Arena(suspicion=True, zookeeper=zookeeper)
    leader, standby = arena.start("a"), arena.start("b")
    (first, _) = arena.until_leader(5.0)
    arena.run(3)
    assert arena.lease.mode is Mode.HDFS
    first.crash()
    successor = standby if first is leader else leader
    assert arena.until_leader(AT_ONCE)[0] is successor
    assert reasons(successor) == ["process-gone"]


def test_of_a_lease_by_hdfs_alone_only_the_session_that_ended_is_seized(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.until(lambda: arena.lease.mode is Mode.HDFS, 5.0)
    arena.run(TIMING.renewal + TIMING.poll)
    for told in (NOBODY, ""):
        standby.participant().send(ProcessGone(told))
    arena.run(TIMING.short_ttl * 2)
    assert arena.leaders() == [leader]
    assert heard(standby, "suspected") == []


def test_a_pause_while_zookeeper_is_away_is_no_end(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.run(TIMING.short_ttl)
    assert arena.wires is not None
    leader.pause()
    arena.wires.reset(leader)
    arena.run(TIMING.renewal)
    leader.resume()
    arena.run(TIMING.short_ttl * 2)
    assert arena.leaders() == [leader]
    assert heard(standby, "suspected") == []


@pytest.mark.parametrize("late", [0.1, 1.0, 5.0])
def test_what_a_dead_leader_has_sent_is_executed_late_and_makes_no_second_leader(arena: Arena, late: float) -> None:
    """Its last renewal gives the lease another name, before or after the standby has seized it."""
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.until(lambda: arena.lease.mode is Mode.HDFS, 5.0)
    arena.run(TIMING.short_ttl)
    renewal = Fault(lambda command: isinstance(command, Rename) and "/lease~" in command.source, delay=late)
    renewal.then = leader.crash
    leader.faults.append(renewal)
    arena.until(lambda: not leader.alive, TIMING.short_ttl)
    assert arena.until_leader(1.0)[0] is standby
    assert reasons(standby) == ["process-gone"]
    arena.run(2 * TIMING.short_ttl)
    assert arena.leaders() == [standby]


def stranger(arena: Arena) -> tuple[Host, ContactAddress]:
    host = Host(arena.world, "x", arena.files, None, TIMING, arena.wires)
    assert arena.wires is not None
    return host, arena.wires.listen(host)


def test_a_forged_address_in_the_node_of_a_session_makes_nobody_suspect(arena: Arena) -> None:
    """Seen on an open ZooKeeper: with an address and a greeting of a stranger there, two led for half a second."""
    (leader,) = arena.start_led()
    host, where = stranger(arena)
    about = f"a {where.host} {where.port} {where.process}"
    arena.zookeeper.tamper(f"/sessions/{arena.lease.attestation}", about.encode())
    standby = arena.start("b")
    arena.run(30)
    host.crash()
    arena.run(30)
    assert arena.leaders() == [leader]
    assert heard(standby, "suspected") == []
    leader.crash()
    assert arena.until_leader(AT_ONCE)[0] is standby, "its true address stands in the file system"


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_contact_that_is_not_the_leaders_own_is_not_followed(arena: Arena, epoch: int) -> None:
    """Remains of an earlier leader, or of a late write, have another session id."""
    leader, standby = arena.start_led("b")
    host, where = stranger(arena)
    arena.files.make(f"{arena.record}/{ContactEntry(epoch, NOBODY, where).name}")
    arena.run(TIMING.long_ttl)
    host.crash()
    arena.run(5)
    assert arena.leaders() == [leader]
    assert heard(standby, "suspected") == []


def contacts(arena: Arena) -> list[str]:
    return [name for name in arena.files.list(arena.record) if name.startswith("contact~")]


def test_every_leader_says_in_the_file_system_where_it_listens_and_what_is_old_is_gone(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    for each in (leader, standby):
        (found,) = contacts(arena)
        entry = ContactEntry.parse(found)
        assert entry is not None
        assert (entry.epoch, entry.session_id) == (arena.directory.epoch, arena.directory.session_id)
        assert entry.contact == each.participant().election.state.contact
        each.crash()
        arena.run(30)


def test_without_suspicion_nothing_says_where_a_leader_listens() -> None:
    arena = Arena()
    arena.start_led("b")
    assert contacts(arena) == []


def test_a_leader_whose_contact_is_lost_writes_it_again(arena: Arena) -> None:
    leader = arena.start("a")
    leader.faults.append(
        Fault(lambda command: isinstance(command, MakeDirectory) and "/contact~" in command.path, dropped=True)
    )
    arena.run(10)
    assert not leader.faults
    assert len(contacts(arena)) == 1


def test_an_error_moves_one_leadership_and_not_the_next_one_of_the_same_process(arena: Arena) -> None:
    """One error is harmless, because the store fences. But a process that is granted a lease later is not gone."""
    leader, standby, third = arena.start_led("b", "c")
    token = arena.lease.attestation
    arena.overlap = 0.0
    for each in (standby, third):
        each.participant().send(ProcessGone(arena.lease.owner))
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
    assert len(heard(other, "suspected")) == 1


def test_a_standby_that_does_not_contend_suspects_no_process(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    expected = (arena.lease.owner, leader.participant().election.state.contact)
    assert standby.participant().election.state.rival_process == expected
    standby.contender.release("orders")
    assert standby.participant().election.state.rival_process is None
    standby.contender.contend("orders")
    arena.run(5)
    assert standby.participant().election.state.rival_process == expected


def test_a_process_that_left_a_job_suspects_nobody_any_more(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    standby.contender.leave("orders")
    leader.crash()
    arena.run(20)
    assert arena.leaders() == []
    with pytest.raises(KeyError):
        standby.participant()
    with pytest.raises(InvalidName):
        leader.contender.join("orders", leader)
