"""Late executions and unknown outcomes: neither makes two leaders.

The arena asserts all the while that at most one contender leads, and that at most one thinks nobody else can.
"""

from collections.abc import Callable

import pytest

from leader.election.events import FilesCommand, Rename
from leader.layout.lease import Lease, Mode
from tests.system.simulation.commands import claim, creation, endpoint, history, renewal, seizure, switch
from tests.system.simulation.process import Fault, Process
from tests.unit.leader.arena import TIMING, Arena

EXPIRY = TIMING.short_ttl * (1 + TIMING.drift)


def crash_when_sent(arena: Arena, process: Process, fault: Fault) -> None:
    """Let the process die right after it has sent the command that the fault waits for."""
    process.faults.append(fault)
    arena.until(lambda: not process.faults, TIMING.long_ttl)
    process.crash()


@pytest.mark.parametrize("delay", [0.5, 3.0, 7.0, 20.0])
def test_a_late_renewal_only_delays_the_next_seizure_by_one_ttl(delay: float) -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    crash_when_sent(arena, leader, Fault(renewal, delay=delay))
    successor, seconds = arena.until_leader(60)
    assert successor is standby
    assert seconds <= min(delay, TIMING.short_ttl) + EXPIRY + 1
    arena.run(delay + 20)
    assert arena.leaders() == [standby]
    assert arena.directory.epoch == 2


def test_a_late_switch_to_zookeeper_without_a_node_is_seized_at_once() -> None:
    arena = Arena()
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.run(20)
    arena.zookeeper_up()
    delay = TIMING.session_timeout + 3
    crash_when_sent(arena, leader, Fault(switch(Mode.ZOOKEEPER), delay=delay))
    seized_before, _ = arena.until_leader(60)
    assert seized_before is standby, "the lease still said hdfs and expired: the switch is refused then"
    arena.run(60)
    assert arena.leaders() == [standby]

    # Now it is executed while the lease can still be switched, just after the node has gone.
    arena = Arena()
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.run(20)
    arena.zookeeper_up()
    crash_when_sent(arena, leader, Fault(switch(Mode.ZOOKEEPER), delay=4.0))
    for session in [each for each in arena.zookeeper.sessions.values() if arena.owner_is(leader, each.id)]:
        arena.zookeeper.expire(session.id)
    arena.until(lambda: arena.lease.mode is Mode.ZOOKEEPER, 5)
    successor, seconds = arena.until_leader(60)
    assert successor is standby
    assert seconds <= 1, "nobody waits for the long ttl of a lease that nobody attests"


@pytest.mark.parametrize("delay", [1.0, 2.0, 5.0, 8.0])
@pytest.mark.parametrize("then", ["cut", "dies", "lives"])
def test_a_late_switch_while_the_leader_goes_on(delay: float, then: str) -> None:
    arena = Arena()
    leader, _ = arena.start_led("b")
    arena.zookeeper_down()
    arena.run(20)
    arena.zookeeper_up()
    leader.faults.append(Fault(switch(Mode.ZOOKEEPER), delay=delay))
    arena.until(lambda: not leader.faults, 60)
    if then == "cut":
        leader.cut_off_zookeeper()
    elif then == "dies":
        leader.crash()
    arena.run(90)
    assert len(arena.leaders()) == 1
    assert then != "lives" or arena.leaders() == [leader]


@pytest.mark.parametrize(
    ("late", "delay"), [*((seizure, delay) for delay in (1, 3, 10)), *((claim, delay) for delay in (1, 5, 10))]
)
def test_a_late_seizure_of_one_that_is_gone_expires_and_its_late_claim_is_claimed_again_one_epoch_higher(
    late: Callable[[FilesCommand], bool], delay: float
) -> None:
    arena = Arena(zookeeper=False)
    leader, gone, waiting = arena.start_led("b", "c")
    waiting.pause()
    gone.faults.append(Fault(late, delay=delay))
    leader.crash()
    arena.until(lambda: not gone.faults, 20)
    gone.crash()
    waiting.resume()
    successor, seconds = arena.until_leader(30)
    assert successor is waiting
    assert seconds <= (delay if late is seizure else 0) + EXPIRY + 1
    if late is claim:
        assert arena.directory.session_id == waiting.grants()[0].session_id
        assert arena.directory.epoch == (3 if delay < EXPIRY else 2)
    arena.run(20)
    assert arena.leaders() == [waiting]
    assert len(waiting.grants()) == 1


def test_a_late_claim_between_the_next_seizure_and_its_claim() -> None:
    arena = Arena(zookeeper=False)
    leader, gone, waiting = arena.start_led("b", "c")
    waiting.pause()
    claimed_at = arena.world.now + 2 * EXPIRY + 10
    leader.crash()
    gone.faults.append(Fault(claim, delay=claimed_at - arena.world.now))
    arena.until(lambda: not gone.faults, 20)
    late = claimed_at - arena.world.now + 2 * EXPIRY  # no later than this it is executed
    gone.crash()
    waiting.resume()
    waiting.faults.append(Fault(claim, delay=late + 10))
    arena.until(lambda: not waiting.faults, 30)
    arena.run(late + 60)
    assert arena.leaders() == [waiting]
    assert waiting.grants()[-1].epoch == arena.directory.epoch
    epochs = [grant.epoch for process in arena.processes for grant in process.grants()]
    assert epochs == sorted(set(epochs))


@pytest.mark.parametrize("delay", [1.0, 4.0, 7.0, 15.0])
@pytest.mark.parametrize("what", [seizure, claim, renewal], ids=lambda what: str(what.__name__))
def test_a_contender_that_gave_up_on_it_and_lives_on(what: Callable[[FilesCommand], bool], delay: float) -> None:
    arena = Arena(zookeeper=False)
    leader, standby, third = arena.start_led("b", "c")
    for process in (standby, third):
        process.faults.append(Fault(what, delay=delay))
    leader.crash()
    arena.run(90)
    assert len(arena.leaders()) == 1
    arena.leaders()[0].crash()
    arena.until_leader(40)


def test_a_claim_whose_answer_finds_the_lease_expired_is_no_grant() -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    standby.faults.append(Fault(claim, delay=0.5))
    leader.crash()
    arena.until(lambda: not standby.faults, 20)
    standby.pause()
    arena.run(2 * EXPIRY)
    assert arena.directory.epoch == 2, "the claim was executed, and it knows nothing of it"
    standby.resume()
    arena.until_leader(20)
    assert [grant.epoch for grant in standby.grants()] == [3]
    assert not standby.revokes(), "it was never told of a leadership that was over already"


def test_every_try_to_seize_has_a_session_id_of_its_own() -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    tried: list[str] = []

    def fits(command: FilesCommand) -> bool:
        if seizure(command) and isinstance(command, Rename):
            lease = Lease.parse(command.destination.rpartition("/")[2])
            tried.append(lease.owner if lease else "")
            return True
        return False

    standby.faults += [Fault(fits, dropped=True) for _ in range(3)]
    leader.crash()
    arena.until_leader(30)
    assert len(set(tried)) == len(tried) == 3, "so one that is executed late is nobody's lease"
    assert standby.grants()[0].session_id not in tried


STEPS: dict[str, Callable[[FilesCommand], bool]] = {
    "creation": creation,
    "seizure": seizure,
    "claim": claim,
    "endpoint": endpoint,
    "history": history,
    "renewal": renewal,
    "switch to zookeeper": switch(Mode.ZOOKEEPER),
    "switch to hdfs": switch(Mode.HDFS),
    "release": switch(Mode.RELEASED),
}
FATES = {
    "lost": lambda fits: Fault(fits, lost=True),
    "dropped": lambda fits: Fault(fits, dropped=True),
    "late": lambda fits: Fault(fits, delay=2.0),
    "too late": lambda fits: Fault(fits, delay=9.0),
}


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("step", STEPS)
def test_an_unknown_outcome_of_a_step_is_resolved(step: str, fate: str) -> None:
    arena = Arena()
    first, second = arena.start("a"), arena.start("b")
    for process in (first, second):
        process.faults.append(FATES[fate](STEPS[step]))
    arena.until_leader(20)
    arena.run(40)
    arena.zookeeper_down()
    arena.run(20)
    arena.zookeeper_up()
    arena.run(20)
    before, epoch = arena.leaders()[0], arena.directory.epoch
    before.contender.release("orders")
    arena.until_leader(20, besides=before)
    before.contender.contend("orders")
    arena.run(30)
    after = arena.leaders()
    assert len(after) == 1
    assert arena.directory.epoch > epoch
    assert after[0].participant().election.state.information is not None
    assert len(arena.endpoints()) == 1
    assert arena.endpoints()[0].endswith(f"jobmaster={after[0].name}_3a6123")
    assert after[0].participant().leader_mirror.mirror.published
    assert not all(process.faults for process in arena.processes), "the step was taken, so the fault has struck"


@pytest.mark.parametrize("fate", FATES)
def test_an_unknown_outcome_moves_no_leader(fate: str) -> None:
    arena = Arena()
    leader, _ = arena.start_led("b")
    for step, disturb in (
        ("renewal", None),
        ("switch to hdfs", arena.zookeeper_down),
        ("renewal", None),
        ("switch to zookeeper", arena.zookeeper_up),
        ("renewal", None),
    ):
        leader.faults.append(FATES[fate](STEPS[step]))
        if disturb is not None:
            disturb()
        arena.run(25)
        assert not leader.faults, f"{step} has not been taken"
    arena.run(60)
    assert arena.leaders() == [leader]
    assert not leader.revokes()


@pytest.mark.parametrize(("leader_rate", "standby_rate"), [(0.99, 1.01), (1.01, 0.99), (0.99, 0.99), (1.01, 1.01)])
@pytest.mark.parametrize("zookeeper", [True, False], ids=["zookeeper", "files-only"])
def test_clocks_within_bounds_make_no_two_holders(leader_rate: float, standby_rate: float, *, zookeeper: bool) -> None:
    arena = Arena(zookeeper=zookeeper)
    leader = arena.start("a", rate=leader_rate)
    arena.run(1)
    arena.start("b", rate=standby_rate)
    arena.run(60)
    assert arena.leaders() == [leader]
    leader.files_link.there = False
    leader.cut_off_zookeeper()
    if zookeeper:
        arena.zookeeper_down()
    arena.until_leader(70, besides=leader)


def test_clocks_that_err_by_more_do_and_the_arena_notices() -> None:
    """The canary: were this to pass unnoticed, the tests above would prove nothing."""
    arena = Arena(zookeeper=False)
    leader = arena.start("a", rate=0.8)
    arena.run(1)
    arena.start("b", rate=1.2)
    arena.run(60)
    leader.files_link.there = False
    with pytest.raises(AssertionError):
        arena.run(20)
