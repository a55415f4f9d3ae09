"""Mirrors in ZooKeeper when it comes and goes, goes back in time, or a leader dies between the two stores."""

import pytest

from leader.election.events import Grant, Revoke
from leader.layout.information import LeaderInformation
from leader.layout.lease import Mode
from store.errors import NotFound
from tests.system.flink_scenarios.trouble import FILES, ZOOKEEPER, Deaf, cut, disconnect, in_copy, mend
from tests.system.simulation.process import Process
from tests.unit.leader.arena import LEADER_NODE, TIMING, Arena

OTHER_NODE = "/jobs/payments/leader"


def ephemeral(arena: Arena) -> list[str]:
    return sorted(path for path in arena.zookeeper.nodes if path.startswith(("/jobs/", "/sessions/")))


@pytest.mark.parametrize("reconnects", [False, True], ids=["watched", "reconnected"])
def test_only_copies_of_jobs_that_are_led_are_repaired(arena: Arena, *, reconnects: bool) -> None:
    (leader,) = arena.start_led()
    leader.contender.join("payments", leader)
    leader.contender.contend("payments")
    arena.run(5)
    good = arena.zookeeper.nodes[OTHER_NODE].data
    leader.contend_again = False
    leader.contender.release("orders")
    arena.run(2)
    leader.contender.leave("orders")
    if reconnects:
        disconnect(leader)
    for path in (LEADER_NODE, OTHER_NODE):
        arena.zookeeper.tamper(path, b"theirs")
    arena.run(1)
    if reconnects:
        assert arena.zookeeper.nodes[OTHER_NODE].data == b"theirs"
        mend(leader, ZOOKEEPER)
    arena.run(10)
    assert arena.zookeeper.nodes[OTHER_NODE].data == good
    assert arena.zookeeper.nodes[LEADER_NODE].data == b"theirs"


def test_after_a_reconnection_every_copy_is_looked_at(arena: Arena) -> None:
    (leader,) = arena.start_led()
    jobs = [f"job-{number}" for number in range(5)]
    for job in jobs:
        leader.contender.join(job, leader)
        leader.contender.contend(job)
    arena.run(5)
    good = {job: arena.zookeeper.nodes[f"/jobs/{job}/leader"].data for job in jobs}
    disconnect(leader)
    for job in jobs[1:]:
        arena.zookeeper.tamper(f"/jobs/{job}/leader", None if job == "job-1" else b"theirs")
    untouched = arena.zookeeper.nodes["/jobs/job-0/leader"]
    mend(leader, ZOOKEEPER)
    arena.run(5)
    assert {job: arena.zookeeper.nodes[f"/jobs/{job}/leader"].data for job in jobs} == good
    assert arena.zookeeper.nodes["/jobs/job-0/leader"] == untouched, "and what was right is not written again"


def test_nothing_remains_of_one_that_died(arena: Arena) -> None:
    (leader,) = arena.start_led()
    assert len(ephemeral(arena)) == 3
    leader.crash()
    arena.run(TIMING.session_timeout + 1)
    assert ephemeral(arena) == []


def test_one_that_stops_deletes_nothing_of_the_others(arena: Arena) -> None:
    leader, standby, third = arena.start_led("b", "c")
    third.contender.release("orders")
    third.contender.leave("orders")
    leader.contend_again = False
    leader.contender.release("orders")
    arena.until(standby.leads, 10)
    arena.run(5)
    before = in_copy(arena)
    assert before.epoch == 2
    leader.contender.release("orders")
    leader.contender.leave("orders")
    arena.run(TIMING.long_ttl)
    assert in_copy(arena) == before
    assert arena.leaders() == [standby]


def cost(arena: Arena, seconds: float = 60.0) -> tuple[int, int]:
    files, nodes = arena.files.operations, arena.zookeeper.operations
    arena.run(seconds)
    return arena.files.operations - files, arena.zookeeper.operations - nodes


def test_a_flapping_zookeeper_leaves_nothing_that_asks_more_often(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    quiet = cost(arena)
    arena.zookeeper_down()
    arena.run(30)
    away = cost(arena)
    for _ in range(40):
        arena.zookeeper_up()
        arena.run(0.7)
        arena.zookeeper_down()
        arena.run(0.3)
    arena.run(30)
    assert cost(arena)[0] <= away[0] + 3
    arena.zookeeper_up()
    arena.run(60)
    assert all(after <= before + 6 for before, after in zip(quiet, cost(arena), strict=True))
    assert arena.leaders() == [leader]


def test_a_standby_that_comes_back_to_zookeeper_looks_again(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    disconnect(standby)
    arena.run(5)
    leader.crash()
    arena.run(TIMING.session_timeout + 5)
    assert not standby.grants(), "nobody can have told it, and the long ttl has not passed"
    mend(standby, ZOOKEEPER)
    seconds = arena.until(standby.leads, TIMING.long_ttl)
    assert seconds <= TIMING.session_timeout / 2 + 1, "as soon as its own session is confirmed"


def test_a_zookeeper_restored_from_an_old_snapshot_moves_no_leader_and_is_brought_up_to_date(arena: Arena) -> None:
    first, second = arena.start_led("b")
    old = {path: node.data for path, node in arena.zookeeper.nodes.items()}
    first.contender.release("orders")
    arena.until(second.leads, 10)
    arena.run(30)
    arena.zookeeper_down()
    arena.run(5)
    arena.zookeeper.wipe()
    for path, data in old.items():
        arena.zookeeper.tamper(path, data)
    restored = {path: node.owner for path, node in arena.zookeeper.nodes.items()}
    assert in_copy(arena).epoch == 1
    arena.zookeeper_up()
    arena.run(TIMING.session_timeout)
    assert in_copy(arena).epoch == 2
    for path, owner in restored.items():  # the sessions of the snapshot that nobody has taken up again
        if path != "/sessions" and path in arena.zookeeper.nodes and arena.zookeeper.nodes[path].owner == owner:
            arena.zookeeper.tamper(path, None)
    arena.run(60)
    assert arena.leaders() == [second]
    assert len(first.grants()) + len(second.grants()) == 2
    assert (in_copy(arena).epoch, arena.lease.mode) == (2, Mode.ZOOKEEPER)


def test_an_old_snapshot_restored_under_a_leader_without_a_file_system_makes_two_for_a_moment(arena: Arena) -> None:
    """A restored ZooKeeper forgets living sessions, against the assumption of S1. The fence does not need it.

    It takes both faults at once: a leader that reaches the file system notes there that ZooKeeper attests it no more.
    """
    arena.start_led("b")
    old = {path: node.data for path, node in arena.zookeeper.nodes.items()}
    leader = arena.start("c")
    arena.run(30)
    arena.ask_to_hand_over("c")
    arena.until(leader.leads, TIMING.long_ttl)
    arena.run(30)
    before = arena.directory
    arena.overlap = 0.0
    cut(leader, FILES)
    arena.zookeeper_down()
    arena.run(1)
    arena.zookeeper.wipe()
    for path, data in old.items():
        arena.zookeeper.tamper(path, data)
    arena.zookeeper_up()
    arena.until_leader(TIMING.session_timeout, besides=leader)
    arena.run(60)
    assert arena.overlap < TIMING.session_timeout
    assert len(arena.leaders()) == 1
    with pytest.raises(NotFound):
        arena.files.list(f"orders/{before.name}")


class DiesWhenPublished(Deaf):
    """Its process dies when the file system holds the endpoints, and before ZooKeeper has heard of them."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def granted(self, job: str, grant: Grant) -> None:
        self.process.contender.confirm(job, grant.session_id, {"rest": "a:1"})

    def published(self, job: str, information: LeaderInformation) -> None:
        assert (job, information.epoch) == ("payments", 1)
        self.process.crash()

    def revoked(self, job: str, revoke: Revoke) -> None:
        raise AssertionError(f"{job}: {revoke.reason}")


def test_a_leader_that_dies_between_the_two_stores_is_followed_and_the_copy_is_its_successors(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    leader.contender.join("payments", DiesWhenPublished(leader))
    leader.contender.contend("payments")
    arena.until(lambda: not leader.alive, 5)
    (directory,) = arena.files.list("payments")
    assert [name for name in arena.files.list(f"payments/{directory}/record") if name.startswith("endpoint~")]
    assert OTHER_NODE not in arena.zookeeper.nodes
    standby.contender.join("payments", standby)
    standby.contender.contend("payments")
    arena.until(lambda: standby.leads("payments"), TIMING.session_timeout + 1)
    arena.run(2)
    assert b'"epoch":2' in arena.zookeeper.nodes[OTHER_NODE].data
    with pytest.raises(NotFound):
        arena.files.list(f"payments/{directory}")
