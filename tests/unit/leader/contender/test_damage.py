"""Damage from outside: repaired in ZooKeeper, survived or logged in HDFS. It moves no leader."""

import pytest

from leader.layout.lease import Lease, Mode, first_lease, lost_lease
from leader.layout.names import MAX_REACHED, LeaderDirectory
from store.errors import NotFound
from tests.system.simulation.process import Process
from tests.unit.leader.arena import LEADER_NODE, TIMING, Arena, said
from tests.unit.leader.samples import C

FORGED = b'{"format":1,"job":"orders","epoch":9999999999,"session_id":"%s","version":1,"endpoints":{}}' % C.encode()


@pytest.mark.parametrize("data", [None, b"", b"garbage", FORGED], ids=["deleted", "emptied", "garbage", "forged"])
def test_a_damaged_mirror_is_repaired_and_moves_no_leader(arena: Arena, data: bytes | None) -> None:
    leader, standby = arena.start_led("b")
    good = arena.zookeeper.nodes[LEADER_NODE].data
    for _ in range(3):
        arena.zookeeper.tamper(LEADER_NODE, data)
        arena.until(lambda: LEADER_NODE in arena.zookeeper.nodes and arena.copy == good, 1)
        arena.run(5)
    assert arena.leaders() == [leader]
    assert not leader.revokes()
    assert not standby.grants()


def test_a_stranger_that_overwrites_the_mirror_costs_little(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    good, operations = arena.copy, arena.files.operations
    for _ in range(600):
        arena.zookeeper.tamper(LEADER_NODE, b"mine")
        arena.run(0.1)
    assert leader.participant().leader_mirror.mirror.repairs <= 20, "seven that pause ever longer, then one in 5 s"
    assert arena.files.operations - operations <= 60 / TIMING.poll + 60 / TIMING.retry + 10, "and looks at HDFS are few"
    arena.until(lambda: arena.copy == good, 6)
    assert arena.leaders() == [leader]


def test_only_the_damaged_job_is_repaired(arena: Arena) -> None:
    (leader,) = arena.start_led()
    leader.contender.join("payments", leader)
    leader.contender.contend("payments")
    arena.run(5)
    other = arena.zookeeper.nodes["/jobs/payments/leader"]
    arena.zookeeper.tamper(LEADER_NODE, b"x")
    arena.run(5)
    assert arena.zookeeper.nodes["/jobs/payments/leader"] == other


def test_a_standby_repairs_nothing(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    leader.pause()
    arena.zookeeper.tamper(LEADER_NODE, b"mine")
    arena.run(3)
    assert arena.copy == b"mine"


def test_a_node_of_an_unknown_job_is_not_touched(arena: Arena) -> None:
    arena.zookeeper.tamper("/jobs/unknown/leader", b"theirs")
    arena.start_led("b")
    arena.run(60)
    assert arena.zookeeper.nodes["/jobs/unknown/leader"].data == b"theirs"


def test_the_next_leader_writes_into_a_node_that_is_still_there_and_deletes_nothing(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    leader.pause()
    leader.crash()
    arena.until(standby.leads, 20)
    arena.run(2)
    assert b'"jobmaster":"b:6123"' in arena.copy
    arena.run(60)
    assert b'"jobmaster":"b:6123"' in arena.copy


def test_a_session_node_that_a_stranger_deletes_makes_two_leaders_for_a_moment_at_most(arena: Arena) -> None:
    """A deletion by hand ends a living session, against the assumption of S1. The leader's own watch limits it."""
    leader, _ = arena.start_led("b")
    arena.overlap = 0.0
    for _ in range(5):
        holder = arena.lease
        assert holder.mode is Mode.ZOOKEEPER
        arena.zookeeper.tamper(f"/sessions/{holder.attestation}", None)
        arena.until_leader(2)
        arena.run(30)
        assert len(arena.leaders()) == 1
    assert arena.overlap < 5 * 0.1
    assert arena.lease.mode is Mode.ZOOKEEPER, "it is attested again"
    assert leader.alive


def test_alone_a_deleted_session_node_moves_no_leader(arena: Arena) -> None:
    (leader,) = arena.start_led()
    arena.zookeeper.tamper(f"/sessions/{arena.lease.attestation}", None)
    arena.run(60)
    assert arena.leaders() == [leader]
    assert not leader.revokes()
    assert arena.lease.mode is Mode.ZOOKEEPER


def test_a_session_node_of_another_attests_nothing(arena: Arena) -> None:
    (leader,) = arena.start_led()
    path = f"/sessions/{arena.lease.attestation}"
    arena.zookeeper.tamper(path, None)
    arena.zookeeper.tamper(path, b"forged")
    arena.run(60)
    assert arena.leaders() == [leader]
    assert f"/sessions/{arena.lease.attestation}" != path, "a node without our session would outlive us"
    leader.crash()
    late = arena.start("b")
    assert arena.until(late.leads, 20) <= TIMING.session_timeout + 1


@pytest.mark.parametrize("data", [b"", b"hello world", None], ids=["emptied", "garbage", "deleted"])
def test_a_damaged_incarnation_moves_no_leader_and_is_repaired(arena: Arena, data: bytes | None) -> None:
    leader, standby = arena.start_led("b")
    arena.zookeeper.tamper("/sessions", data)
    arena.run(60)
    assert arena.leaders() == [leader]
    third = arena.start("c")
    arena.run(60)
    assert arena.leaders() == [leader]
    leader.crash()
    after, seconds = arena.until_leader(70)
    assert after in (standby, third)
    assert seconds <= TIMING.long_ttl * (1 + TIMING.drift) + 1
    arena.run(60)
    assert arena.lease.mode is Mode.ZOOKEEPER


def test_a_zookeeper_that_hangs_for_the_leader_alone_moves_nothing(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    leader.zookeeper_hangs()
    arena.run(TIMING.session_timeout * 3)
    assert arena.leaders() == [leader]
    assert arena.lease.mode is Mode.HDFS
    leader.zookeeper_answers()
    arena.run(60)
    assert arena.leaders() == [leader]
    assert not standby.grants()


def test_a_leader_cut_off_from_zookeeper_alone_stays(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    leader.cut_off_zookeeper()
    arena.run(120)
    assert arena.leaders() == [leader]
    assert not standby.grants()


@pytest.mark.parametrize("place", ["record", "job"])
def test_strays_change_nothing(arena: Arena, place: str) -> None:
    leader, standby = arena.start_led("b")
    lease, directory = arena.lease.name, arena.directory.name
    record = [
        f"{arena.record}/{each}" for each in ("_tmp", "lease", "lease~1", "endpoint~~", f"{lease}.bak", lease[:-1])
    ]
    job = [f"orders/{each}" for each in ("_tmp", "9999999999", f"{directory}.bak", "spark")]
    for stray in record if place == "record" else job:
        arena.files.make(stray)
    arena.run(120)
    assert arena.leaders() == [leader]
    leader.crash()
    assert arena.until(standby.leads, 20) <= TIMING.session_timeout + 1


def ask_to_hand_over(arena: Arena, leader: Process) -> None:
    """The leader's next renewal finds no lease by the old name, so it lists the job's directory."""
    state = leader.participant().election.state
    assert state.directory is not None
    assert state.lease is not None
    record = f"orders/{state.directory.name}/record"
    arena.files.rename(f"{record}/{state.lease.name}", f"{record}/{state.lease.asked_to('b').name}")


FORGERIES = ["9999999999", "0999999999", "0000000002", "0000000001"]
"""Epochs of directories that a stranger makes: none can be reached, reached one day, the next one, and the present."""


@pytest.mark.parametrize("inside", ["", "/record", "/record/lease"])
@pytest.mark.parametrize("epoch", FORGERIES)
def test_a_leader_directory_made_by_hand_stops_no_leader_or_standby(arena: Arena, epoch: str, inside: str) -> None:
    leader, standby = arena.start_led("b")
    path = f"orders/{epoch}-{C}"
    for part in ("", *inside.split("/")[1:]):
        path = f"{path}/{part}".rstrip("/")
        arena.files.make(path)
    arena.run(60)
    assert arena.leaders() == [leader]
    assert not leader.revokes()
    ask_to_hand_over(arena, leader)
    arena.until(standby.leads, TIMING.long_ttl)
    assert not [each for each in leader.revokes() if "fenced" in each.reason]
    standby.crash()
    third = arena.start("c")
    arena.until_leader(TIMING.long_ttl + 1)
    assert [each.epoch for process in arena.processes for each in process.grants()] in ([1, 3, 2], [1, 2, 3])
    operations = arena.files.operations
    arena.run(60)
    assert arena.files.operations - operations < 20, "nobody looks at it for ever"
    if epoch == "0999999999":
        assert any("was made by hand: remove it" in str(sentence) for sentence in said(third))


def test_a_second_leader_directory_with_a_lease_fences_the_leader_of_the_lower_epoch(arena: Arena) -> None:
    """An operator has copied an old directory back. Two leaders would be worse than one that moves."""
    (leader,) = arena.start_led()
    arena.files.make(f"orders/0000000041-{C}")
    arena.files.make(f"orders/0000000041-{C}/record")
    arena.files.make(f"orders/0000000041-{C}/record/{first_lease(C).name}")
    ask_to_hand_over(arena, leader)
    arena.until(leader.revokes, TIMING.long_ttl)
    assert "epoch 41 has begun" in leader.revokes()[0].reason


def test_foreign_endpoints_are_cleared_away_by_the_next_leader(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    for stray in ("endpoint~0000000001~1~1~ui=x", "endpoint~0000000099~1~1~ui=x", "endpoint~0000000000~7~1~ui=x"):
        arena.files.make(f"{arena.record}/{stray}")
    leader.crash()
    arena.until(standby.leads, 20)
    arena.run(5)
    assert arena.endpoints() == ["endpoint~0000000002~1~1~jobmaster=b_3a6123"]


def test_without_a_lease_nobody_leads_everybody_says_so_and_a_lease_put_back_ends_it(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    lost = arena.lease
    arena.files.delete(f"{arena.record}/{lost.name}")
    arena.run(TIMING.long_ttl + 30)
    assert not arena.leaders()
    assert leader.revokes()[0].until is not None, "its work was stopped in time"
    for process in (leader, standby):
        assert any("holds no lease" in str(sentence) for sentence in said(process))
    operations = arena.files.operations
    arena.run(60)
    assert arena.files.operations - operations < 2 * 60 / TIMING.poll + 10, "nobody hammers the NameNode"
    arena.files.make(f"{arena.record}/{Lease(lost.sequence + 1, Mode.RELEASED, 0, lost.owner, '', 'nobody').name}")
    arena.until_leader(5)


def test_a_lease_that_the_doctor_puts_back_is_seized_when_no_leader_can_believe_any_more(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    taken = arena.lease
    assert taken.mode is Mode.ZOOKEEPER
    arena.files.delete(f"{arena.record}/{taken.name}")
    arena.files.make(f"{arena.record}/{lost_lease(C, TIMING.long_ttl_ms).name}")
    arena.run(1)
    assert arena.leaders() == [leader], "it believes on, and nobody else does"
    arena.until(lambda: not leader.leads(), TIMING.long_ttl)
    _, seconds = arena.until_leader(TIMING.long_ttl * (1 + TIMING.drift) + 1)
    assert seconds > TIMING.long_ttl / 2
    assert arena.directory.epoch == 2


def test_of_two_leases_the_later_one_counts(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    older = Lease(0, Mode.RELEASED, 0, C, "", "nobody")
    arena.files.make(f"{arena.record}/{older.name}")
    arena.run(60)
    assert arena.leaders() == [leader]
    # Writers into HDFS decide: the old leader notices when it renews, and its writes are refused before that.
    arena.overlap = 0.0
    newer = Lease(arena.lease.sequence + 100, Mode.HDFS, 6000, C, "", "stranger")
    arena.files.make(f"{arena.record}/{newer.name}")
    arena.until(lambda: not leader.leads(), TIMING.long_ttl)
    assert "fenced" in leader.revokes()[0].reason or "seized" in leader.revokes()[0].reason
    arena.until_leader(20)
    arena.run(60)
    assert len(arena.leaders()) == 1
    assert arena.lease.sequence > newer.sequence
    assert standby.alive


@pytest.mark.parametrize("sequence", [MAX_REACHED + 1, 9_999_999_999])
def test_a_lease_that_no_leader_can_have_made_moves_nobody_and_stops_nobody(arena: Arena, sequence: int) -> None:
    leader, standby = arena.start_led("b")
    arena.files.make(f"{arena.record}/{Lease(sequence, Mode.HDFS, 6000, C, '', 'stranger').name}")
    arena.run(120)
    assert arena.leaders() == [leader]
    assert not leader.revokes()
    leader.crash()
    assert arena.until(standby.leads, 20) <= TIMING.session_timeout + 1
    arena.run(60)
    standby.crash()
    third = arena.start("c")
    arena.until_leader(TIMING.long_ttl + 1)
    assert [each.epoch for each in third.grants()] == [3]


def test_a_leader_directory_that_vanishes_ends_the_leadership_and_is_not_made_up(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    taken = arena.directory.name
    arena.files.rename(f"orders/{taken}", "taken-away")
    arena.run(TIMING.long_ttl)
    assert not arena.leaders()
    assert "fenced" in leader.revokes()[0].reason
    assert arena.files.list("orders") == []
    arena.files.rename("taken-away", f"orders/{taken}")
    arena.until_leader(TIMING.long_ttl * 1.1)
    assert arena.directory.epoch == 2


def test_a_deleted_job_is_created_anew_by_a_contender(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    del arena.files.root.entries["orders"]
    arena.until(leader.revokes, TIMING.long_ttl)
    assert "directory is gone" in leader.revokes()[0].reason
    arena.until_leader(20)
    assert len(arena.leaders()) == 1


def test_a_directory_of_a_higher_epoch_put_there_by_hand_fences_the_leader(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    forged = LeaderDirectory(7, C)
    arena.files.rename(f"orders/{arena.directory.name}", f"orders/{forged.name}")
    arena.until(lambda: not leader.leads(), TIMING.long_ttl)
    assert "epoch 7 has begun" in leader.revokes()[0].reason
    arena.until_leader(TIMING.long_ttl * 1.1)
    assert arena.directory.epoch == 8
    with pytest.raises(NotFound):
        arena.files.list(f"orders/{forged.name}")


def test_in_safe_mode_a_leader_stays_for_the_long_ttl_and_nobody_hammers_the_namenode(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    arena.files.safe_mode = True
    operations = arena.files.operations
    arena.run(30)
    assert arena.leaders() == [leader]
    assert arena.files.operations - operations < 30 / TIMING.retry * 3
    arena.files.safe_mode = False
    arena.run(60)
    assert arena.leaders() == [leader]
    assert not leader.revokes()
