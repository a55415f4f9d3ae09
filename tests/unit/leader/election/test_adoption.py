"""Adoption: a process takes up the leadership of one that was killed, and nothing that the dead one sent undoes it."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from leader.election.adoption import LAST_SEQUENCE, LEAP, refusal
from leader.election.events import Grant
from leader.election.state import Phase
from leader.layout.lease import LOOK, Lease, Mode
from leader.layout.names import ADOPTED, LeaderDirectory
from store.errors import Invalid
from tests.system.simulation.commands import own_lease, renewal
from tests.system.simulation.process import Fault, Process
from tests.unit.leader.arena import TIMING, Arena

NAME = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
LEADER = LeaderDirectory(7, NAME)
LEASE = Lease(5, Mode.ZOOKEEPER, 60_000, NAME, "1234abcd-1", "a")
WITHIN = 2.0


def come_back(arena: Arena, dead: Process, name: str = "a.2") -> Process:
    """Start a new process on the dead one's host, which takes its command up."""
    assert dead.guard is not None
    process = Process(arena.world, name, arena.files, arena.ensemble, TIMING, arena.wires, dead.guard)
    arena.processes.append(process.start())
    return process


def led_and_killed(*, zookeeper: bool = True, after: float = 0.5) -> tuple[Arena, Process, Process]:
    """Return an arena whose leader `a` was killed, not its command; the process that has come back; and a standby."""
    arena = Arena(zookeeper=zookeeper, suspicion=zookeeper)
    leader, standby = arena.start_led("b")
    leader.orphan(WITHIN)
    arena.run(after)
    return arena, come_back(arena, leader), standby


@pytest.mark.parametrize(
    ("directory", "lease", "said"),
    [
        (LeaderDirectory(8, OTHER), LEASE, "It cannot be taken up: epoch 8 has begun."),
        (LeaderDirectory(7, OTHER), LEASE, "It cannot be taken up: epoch 7 has begun."),
        (None, LEASE, "It cannot be taken up: epoch 0 has begun."),
        (LEADER, replace(LEASE, owner=OTHER, contender="b"), "It cannot be taken up: its lease was seized by b."),
        (LEADER, replace(LEASE, mode=Mode.RELEASED), "It cannot be taken up: its lease was given back."),
        (
            LEADER,
            replace(LEASE, sequence=LAST_SEQUENCE + 1),
            "It cannot be taken up: its lease has been renamed too often.",
        ),
        (LEADER, replace(LEASE, sequence=LAST_SEQUENCE), None),
        (LEADER, LEASE, None),
    ],
)
def test_the_dead_ones_lease_is_taken_up(directory: LeaderDirectory | None, lease: Lease, said: str | None) -> None:
    assert refusal(LEADER, directory, lease) == said


@pytest.mark.parametrize("zookeeper", [True, False], ids=["zookeeper", "files-only"])
def test_a_process_that_comes_back_leads_on_in_the_same_epoch(zookeeper: bool) -> None:
    arena, new, standby = led_and_killed(zookeeper=zookeeper)
    before = arena.directory
    arena.run(0.5)
    assert arena.leaders() == [new]
    assert new.grants() == [Grant(before.epoch, before.session_id, ADOPTED)]
    arena.run(60)
    assert arena.leaders() == [new]
    assert arena.directory == before
    assert not standby.grants()
    assert arena.lease.contender == "a.2"
    assert arena.lease.mode is (Mode.ZOOKEEPER if zookeeper else Mode.HDFS), "the usual way back"


def test_the_first_rename_leaps_over_all_that_the_dead_one_can_have_sent() -> None:
    arena, new, _ = led_and_killed()
    before = arena.lease.sequence
    arena.until(new.leads, 1)
    assert before + LEAP < arena.lease.sequence <= before + LEAP + 2
    assert arena.lease.mode is Mode.HDFS


def test_nothing_is_believed_before_the_rename_is_acknowledged() -> None:
    arena = Arena()
    leader, _ = arena.start_led("b")
    leader.orphan(WITHIN)
    new = come_back(arena, leader)
    new.faults.append(Fault(own_lease, lost=True))
    arena.until(lambda: not new.faults, 1)
    arena.run(0.5)
    assert arena.lease.contender == "a.2", "it is done, and nobody has said so"
    assert not new.holds()
    assert new.participant().election.state.phase is Phase.STANDBY
    arena.until(new.leads, 2 * TIMING.call_timeout)
    assert new.grants()[0].reason == ADOPTED


@pytest.mark.parametrize("delay", [0.3, 0.6, 3.0])
def test_a_renewal_of_the_dead_one_that_is_executed_late_undoes_nothing(delay: float) -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    leader.faults.append(Fault(renewal, delay=delay))
    arena.until(lambda: not leader.faults, TIMING.long_ttl)
    leader.orphan(WITHIN)
    arena.run(0.5)
    new = come_back(arena, leader)
    arena.run(60)
    assert arena.leaders() == [new]
    assert not standby.grants()


def test_a_refused_rename_is_tried_again() -> None:
    arena = Arena()
    leader, _ = arena.start_led("b")
    leader.orphan(WITHIN)
    new = come_back(arena, leader)
    new.faults.append(Fault(own_lease, error=Invalid("Refused on purpose.")))
    arena.run(1.5)
    assert arena.leaders() == [new]
    assert "orders: It could not take up the lease: Refused on purpose." in [item for _, _, item in new.history]


def test_endpoints_are_published_anew_beyond_the_versions_of_the_dead_one() -> None:
    arena, new, _ = led_and_killed()
    arena.run(5)
    assert arena.endpoints() == ["endpoint~0000000001~1002~1~jobmaster=a.2_3a6123"]
    assert arena.leaders() == [new]


def test_what_an_operator_asked_the_dead_one_is_heard() -> None:
    for mark, heard in ((LOOK, "requested"), ("b", "asked")):
        arena = Arena()
        leader, _ = arena.start_led("b")
        leader.orphan(WITHIN)
        marked = arena.lease.asked_to(mark)
        arena.files.rename(f"{arena.record}/{arena.lease.name}", f"{arena.record}/{marked.name}")
        new = come_back(arena, leader)
        arena.run(1)
        assert heard in [kind for _, kind, _ in new.history]


def test_one_that_comes_too_late_contends_like_any_other() -> None:
    arena = Arena(suspicion=True)
    leader, standby = arena.start_led("b")
    guard = leader.guard
    assert guard is not None
    leader.orphan(WITHIN)
    arena.run(WITHIN - 0.1)
    assert guard.command_runs
    assert not standby.grants(), "the guard refuses no connection"
    successor, seconds = arena.until_leader(5)
    assert successor is standby
    assert seconds < 1, "the guard has ended"
    assert not guard.command_runs


def test_a_leadership_that_is_over_is_revoked_and_not_contended_for() -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    leader.orphan(float("inf"))
    arena.until_leader(TIMING.short_ttl * 2)
    new = come_back(arena, leader)
    new.contend_again = False
    arena.run(60)
    assert arena.leaders() == [standby]
    assert [each.reason for each in new.revokes()] == ["It cannot be taken up: epoch 2 has begun."]
    assert not new.grants()


def test_a_job_that_is_gone_is_not_made_again() -> None:
    arena = Arena(zookeeper=False)
    (leader,) = arena.start_led()
    leader.orphan(float("inf"))
    arena.files.root.entries.pop("orders")
    new = come_back(arena, leader)
    new.contend_again = False
    arena.run(5)
    assert [each.reason for each in new.revokes()] == ["The job's directory is gone."]
    assert "orders" not in arena.files.root.entries


@pytest.mark.parametrize("told", ["release", "step down"])
def test_one_that_is_told_to_stop_meanwhile_takes_nothing_up(told: str) -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    leader.orphan(WITHIN)
    new = come_back(arena, leader)
    new.contend_again = False
    new.faults.append(Fault(own_lease, delay=1.0))
    arena.until(lambda: not new.faults, 1)
    if told == "release":
        new.contender.release("orders")
    else:
        new.contender.step_down("orders", "It was told to.")
    arena.run(3 * TIMING.short_ttl)
    assert not new.grants()
    assert arena.leaders() == [standby]
    assert [each.reason for each in new.revokes()] == ([] if told == "release" else ["It was told to."])


def test_an_answer_that_comes_after_the_lease_has_run_out_grants_nothing() -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    leader.orphan(float("inf"))
    new = come_back(arena, leader)
    new.contend_again = False
    new.faults.append(Fault(own_lease, then=new.pause))
    arena.until(lambda: not new.faults, 1)
    arena.run(TIMING.session_timeout)  # its time to live, see decision 64
    new.resume()
    arena.run(30)
    assert not new.grants()
    assert [each.reason for each in new.revokes()] == ["Its lease ran out before it was taken up."]
    assert arena.leaders() == [standby]


def test_names_of_the_lease_never_come_back() -> None:
    arena = Arena(zookeeper=False)
    seen: list[int] = []
    arena.files.told = lambda _at, _op, _path, target, _by: seen.extend(
        lease.sequence for lease in [Lease.parse(target.rpartition("/")[2])] if lease
    )
    leader, _ = arena.start_led("b")
    for number in range(2, 5):
        leader.orphan(WITHIN)
        leader = come_back(arena, leader, f"a.{number}")
        arena.run(10)
        assert arena.leaders() == [leader]
    assert all(before < after for before, after in pairwise(seen))


@pytest.mark.parametrize("zookeeper", [False, True])
def test_the_lease_that_is_taken_up_outlasts_what_the_dead_one_believed(zookeeper: bool) -> None:
    """The command goes on for so long, also if the new process dies at once; the next renewal is a usual one."""
    arena, process, _ = led_and_killed(zookeeper=zookeeper)
    taken = list[Lease]()
    arena.files.told = lambda _at, _how, _from, to, by: taken.extend(
        [each] if by == process.name and (each := Lease.parse(to.rpartition("/")[2])) else []
    )
    arena.run(TIMING.session_timeout)
    assert taken[0].mode is Mode.HDFS
    assert taken[0].ttl == max(TIMING.short_ttl, TIMING.session_timeout)
    assert taken[1].ttl == TIMING.short_ttl
    assert (taken[-1].mode is Mode.ZOOKEEPER) == zookeeper
