"""A standby that hears of a release: it seizes what the notice names, and only the store says whether that is there."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from leader.election.events import ListJob, ListRecord, Nudge, ReleaseHeard, Rename
from leader.layout.information import LeaderInformation
from leader.layout.lease import ANYBODY, Lease, Mode
from tests.system.simulation.commands import claim, renewal, seizure
from tests.system.simulation.process import Process
from tests.unit.leader.arena import TIMING, Arena, arenas, commands, reasons
from tests.unit.leader.samples import C

ARENAS = arenas(suspicion=True)

AT_ONCE = 0.1
SOME = 5.0


def released(lease: Lease, successor: str = "") -> Lease:
    return replace(
        lease, sequence=lease.sequence + 1, mode=Mode.RELEASED, ttl_ms=0, attestation="", successor=successor
    )


def hear(process: Process, lease: Lease) -> None:
    process.run(lambda: process.participant().send(ReleaseHeard(lease)))


def test_a_lease_that_is_released_is_seized_without_a_look(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    asked = commands(standby)
    leader.run(lambda: leader.contender.release("orders"))
    assert arena.until_leader(AT_ONCE)[0] is standby
    assert reasons(standby) == ["released"]
    seized, claimed = asked[:2]
    assert isinstance(seized, Rename)
    assert seizure(seized)
    assert isinstance(claimed, Rename)
    assert claim(claimed)
    arena.run(30)
    assert arena.leaders() == [standby]


def test_it_is_seized_with_zookeeper_away_as_well(arena: Arena) -> None:
    """Without the notice a standby finds it when the leader would have renewed."""
    leader, standby = arena.start_led("b")
    arena.zookeeper_down()
    arena.run(TIMING.session_timeout)
    leader.run(lambda: leader.contender.release("orders"))
    assert arena.until_leader(AT_ONCE)[0] is standby


def test_of_many_standbys_one_gets_it(arena: Arena) -> None:
    leader, *standbys = arena.start_led("b", "c", "d")
    leader.run(lambda: leader.contender.release("orders"))
    after, _ = arena.until_leader(AT_ONCE)
    arena.run(30)
    assert after in standbys
    assert arena.leaders() == [after]
    assert arena.directory.epoch == 2


def test_a_renewal_that_the_standby_has_not_seen_makes_no_difference(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    seen = standby.participant().election.state.lease
    arena.until(lambda: arena.lease != seen, TIMING.long_ttl)
    leader.run(lambda: leader.contender.release("orders"))
    assert arena.until_leader(AT_ONCE)[0] is standby


def test_a_lease_that_is_kept_for_another_is_left_to_it(arena: Arena) -> None:
    leader, other, named = arena.start_led("b", "c")
    asked = commands(other)
    leader.run(lambda: leader.contender.release("orders", "c"))
    assert arena.until_leader(AT_ONCE)[0] is named
    assert not [each for each in asked if isinstance(each, Rename)]


def test_anybody_may_take_what_is_kept_for_anybody(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    leader.run(lambda: leader.contender.release("orders", ANYBODY))
    assert arena.until_leader(AT_ONCE)[0] is standby


def test_a_notice_that_is_not_true_costs_one_refusal_and_a_look(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    asked = commands(standby)
    hear(standby, released(arena.lease))
    arena.run(SOME)
    assert arena.leaders() == [leader]
    seized, *looks = asked
    assert isinstance(seized, Rename)
    assert seizure(seized)
    assert 1 <= len(looks) <= 3
    assert all(isinstance(each, ListJob | ListRecord) for each in looks)


def test_notices_that_are_not_true_come_to_little(arena: Arena) -> None:
    """A stranger on the way can say a thousand of them in a second: a seizure is tried again only after a pause."""
    leader, standby = arena.start_led("b")
    asked = commands(standby)
    for _ in range(1000):
        hear(standby, released(arena.lease))
        arena.run(0.001)
    assert arena.leaders() == [leader]
    assert len([each for each in asked if isinstance(each, Rename)]) <= 1 + 1 / TIMING.retry


WRONG: list[Callable[[Lease], Lease]] = [
    lambda lease: lease,
    lambda lease: replace(lease, sequence=lease.sequence + 1),
    lambda lease: replace(released(lease), sequence=lease.sequence),
    lambda lease: replace(released(lease), owner=C),
    lambda lease: released(lease, "c"),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_notice_that_cannot_be_true_costs_nothing(arena: Arena, wrong: Callable[[Lease], Lease]) -> None:
    leader, standby = arena.start_led("b")
    asked = commands(standby)
    hear(standby, wrong(arena.lease))
    assert asked == []
    arena.run(SOME)
    assert arena.leaders() == [leader]


def test_who_leads_or_does_not_contend_hears_nothing(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    standby.run(lambda: standby.contender.release("orders"))
    arena.run(1)
    for process in (leader, standby):
        asked = commands(process)
        hear(process, released(arena.lease))
        arena.run(1)
        assert not [each for each in asked if not renewal(each)]
    assert arena.leaders() == [leader]


def test_a_notice_that_comes_during_a_look_is_followed_by_another_look(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    standby.run(lambda: standby.participant().send(Nudge()))
    asked = commands(standby)
    hear(standby, released(arena.lease))
    assert asked == []
    arena.run(SOME)
    assert [type(each) for each in asked][:1] == [ListRecord]
    assert arena.leaders() == [leader]


def test_a_leader_that_comes_back_leaves_its_lease_to_others_all_the_same(arena: Arena) -> None:
    (leader,) = arena.start_led()
    leader.run(lambda: leader.contender.release("orders"))
    leader.run(lambda: leader.contender.contend("orders"))
    took = arena.until(leader.leads, 30)
    assert took >= TIMING.hand_over - 0.1


def test_endpoints_that_are_known_before_the_grant_are_published_with_it(arena: Arena) -> None:
    leader = arena.start("a")
    leader.endpoints_ahead = True  # it confirms nothing itself
    leader.run(lambda: leader.contend_for("orders"))
    arena.run(1)
    published = [what for _, kind, what in leader.history if kind == "published orders"]
    assert [each.endpoints for each in published if isinstance(each, LeaderInformation)] == [{"jobmaster": "a:6123"}]
