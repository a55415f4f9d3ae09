"""Grants and revocations as their listeners see them, in virtual time."""

import random
from collections.abc import Callable

import pytest

from leader.election.events import Grant, Revoke
from tests.system.flink_scenarios.trouble import FILES, Deaf, cut, in_copy
from tests.system.simulation.process import Process
from tests.unit.leader.arena import LEADER_NODE, TIMING, Arena, arenas, said

ARENAS = arenas(zookeeper=(True, False))


class Told(Deaf):
    """Keeps its notifications, and whether it could believe at that moment that it leads."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.leads_until = float("-inf")
        self.grants: list[tuple[Grant, bool]] = []
        self.revokes: list[tuple[Revoke, bool]] = []

    def granted(self, job: str, grant: Grant) -> None:
        assert job in self.process.contender.participants
        self.grants.append((grant, self.process.now() < self.leads_until))

    def revoked(self, job: str, revoke: Revoke) -> None:
        assert job in self.process.contender.participants
        self.revokes.append((revoke, self.process.now() < self.leads_until))

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        assert job in self.process.contender.participants
        assert leads_until <= holds_until
        self.leads_until = leads_until


def contend(process: Process, job: str) -> Told:
    told = Told(process)
    process.contender.join(job, told)
    process.contender.contend(job)
    return told


def test_one_session_id_is_in_the_grant_the_directory_the_lease_and_the_copy(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    grant = leader.grants()[0]
    assert (arena.directory.epoch, arena.directory.session_id) == (grant.epoch, grant.session_id)
    assert arena.lease.owner == grant.session_id
    information = leader.participant().election.state.information
    assert information is not None
    assert information.session_id == grant.session_id
    if arena.ensemble:
        assert in_copy(arena) == information


def test_whoever_is_told_of_a_grant_leads_and_of_a_revocation_leads_no_more(arena: Arena) -> None:
    process = arena.start("a")
    told = contend(process, "payments")
    arena.run(1)
    assert [leads for _, leads in told.grants] == [True]
    process.contender.step_down("payments", "The work is being stopped.")
    assert [leads for _, leads in told.revokes] == [False]


def test_who_contends_is_announced_by_name_and_no_more_when_it_gave_up() -> None:
    arena = Arena()
    leader, standby = arena.start_led("b")
    assert arena.lease.contender == "a"
    for process in (leader, standby):
        assert arena.zookeeper.nodes[f"/jobs/orders/contenders/{process.name}"].data == process.name.encode()
    standby.contender.release("orders")
    arena.run(1)
    announced = [path for path in arena.zookeeper.nodes if path.startswith("/jobs/orders/contenders/")]
    assert announced == ["/jobs/orders/contenders/a"]


def test_a_leader_that_stops_before_it_has_confirmed_leaves_the_job_free(arena: Arena) -> None:
    first = arena.start("a")
    first.endpoints = None
    arena.until_leader(1)
    first.contend_again = False
    first.contender.release("orders")
    arena.run(2)
    assert arena.endpoints() == []
    assert arena.ensemble is None or LEADER_NODE not in arena.ensemble.nodes
    second = arena.start("b")
    leader, seconds = arena.until_leader(5)
    assert leader is second
    assert seconds < 1
    arena.run(1)
    assert arena.endpoints() == ["endpoint~0000000002~1~1~jobmaster=b_3a6123"]


def test_a_standby_publishes_nothing_even_under_the_leaders_session_id(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    before = arena.endpoints(), arena.copy if arena.ensemble else b""
    standby.contender.confirm("orders", leader.grants()[0].session_id, {"jobmaster": "b:6123"})
    arena.run(60)
    assert (arena.endpoints(), arena.copy if arena.ensemble else b"") == before
    assert standby.participant().election.state.information is None


def test_belief_ends_by_the_clock_before_anybody_says_so(arena: Arena) -> None:
    (leader,) = arena.start_led()
    leader.pause()
    arena.until(lambda: not leader.leads(), TIMING.long_ttl)
    assert not leader.revokes(), "it is paused: nothing can have told it"
    arena.run(TIMING.long_ttl)  # by then no pending answer can say anything else
    leader.resume()
    assert not leader.leads()
    arena.until(leader.revokes, TIMING.session_timeout)
    assert len(leader.revokes()) == 1


def test_what_is_stored_stays_when_the_leadership_is_lost(arena: Arena) -> None:
    (leader,) = arena.start_led()
    before = arena.directory, arena.endpoints()
    cut(leader, FILES)
    arena.until(leader.revokes, TIMING.long_ttl)
    arena.run(30)
    assert (arena.directory, arena.endpoints()) == before
    assert leader.participant().election.state.information is None


def test_every_job_hears_that_its_leadership_has_ended(arena: Arena) -> None:
    process = arena.start("a")
    heard = [contend(process, job) for job in ("payments", "refunds", "returns")]
    arena.run(30)
    assert [len(told.grants) for told in heard] == [1, 1, 1]
    assert len({told.grants[0][0].session_id for told in heard}) == 3
    cut(process, FILES)
    arena.run(TIMING.long_ttl)
    for told in heard:
        ((revoke, leads),) = told.revokes
        assert (revoke.session_id, leads) == (told.grants[0][0].session_id, False)
        assert revoke.until is not None


def test_what_was_given_back_is_not_revoked_again(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    leader.contend_again = False
    leader.contender.release("orders")
    arena.until(standby.leads, 10)
    standby.crash()
    arena.run(60)
    assert len(leader.revokes()) == 1


def test_who_has_left_hears_nothing_more(arena: Arena) -> None:
    leader, leaving, _ = arena.start_led("b", "c")
    leaving.contender.leave("orders")
    before = list(leaving.history)
    arena.files.safe_mode = True
    leader.crash()
    arena.run(30)
    arena.files.safe_mode = False
    arena.until_leader(60)
    assert leaving.history == before


def test_what_the_store_refuses_is_said_by_every_contender_that_meets_it(arena: Arena) -> None:
    leader, *standbys = arena.start_led("b", "c")
    arena.files.safe_mode = True
    leader.crash()
    arena.run(30)
    for standby in standbys:
        assert len([sentence for sentence in said(standby) if "safe mode" in sentence]) == 1


@pytest.mark.parametrize("how", ["crash", "release"])
def test_one_leader_after_another_and_each_is_in_the_copy(how: str) -> None:
    arena = Arena()
    arena.start_led("b", "c", "d")
    gone: list[str] = []
    for epoch in (2, 3, 4):
        leader = arena.leaders()[0]
        gone.append(leader.name)
        if how == "crash":
            leader.crash()
        else:
            leader.contend_again = False
            leader.contender.release("orders")
        after, _ = arena.until_leader(TIMING.session_timeout + 1, besides=leader)
        arena.run(2)
        assert after.name not in gone
        information = in_copy(arena)
        assert (information.epoch, dict(information.endpoints)) == (epoch, {"jobmaster": f"{after.name}:6123"})


def test_those_that_join_later_lead_when_those_before_them_have_died() -> None:
    arena = Arena()
    arena.start_led("b")
    led = ["a"]
    for fresh in ("c", "d", "e", "f"):
        arena.leaders()[0].crash()
        arena.start(fresh)
        after, _ = arena.until_leader(TIMING.session_timeout + 1)
        led.append(after.name)
        arena.run(30)
        assert in_copy(arena).epoch == arena.directory.epoch == len(led)
    assert len(set(led)) == len(led)
    assert set(led) & {"c", "d", "e", "f"}


def actions(arena: Arena, process: Process, other: Process, session_id: str) -> list[Callable[[], None]]:
    contender, address = process.contender, {"jobmaster": f"{process.name}:1"}
    return [
        lambda: contender.release("orders"),
        lambda: contender.step_down("orders", "It was asked to."),
        lambda: contender.contend("orders"),
        lambda: contender.confirm("orders", session_id, address),
        lambda: arena.ask_to_hand_over(other.name),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_asked_of_them_one_leads_in_the_end(arena: Arena, seed: int) -> None:
    """Granted, revoked, confirmed under any session id and asked to hand over, at any moment; the arena watches."""
    chance = random.Random(seed)  # noqa: S311  # replayed, not secret
    processes = list(arena.start_led("b", "c"))
    for _ in range(60):
        process, other = chance.sample(processes, 2)
        sessions = [grant.session_id for grant in (*process.grants(), *other.grants())] or ["none"]
        chance.choice(actions(arena, process, other, chance.choice(sessions)))()
        arena.run(chance.choice([0.0, 0.01, 0.3, 3.0]))
    for process in processes:
        process.contender.contend("orders")
    arena.run(60)
    (leader,) = arena.leaders()
    epochs = sorted(grant.epoch for process in processes for grant in process.grants())
    assert epochs == sorted(set(epochs))
    assert leader.grants()[-1].epoch == epochs[-1] == arena.directory.epoch
    assert len(arena.endpoints()) == 1
    assert f"jobmaster={leader.name}_3a" in arena.endpoints()[0]
