"""A paused job: its leader stays, nobody takes over, and what was decided before the pause is refused."""

from collections.abc import Callable

import pytest

from leader.election.events import ListRecord, Log, ProcessGone, RequestsFound
from leader.election.rival import RivalLease
from leader.layout.lease import ANYBODY, LOOK, PAUSED, Attestation, Lease, Mode
from leader.layout.pause import Pause
from store.errors import NotFound
from tests.unit.leader.arena import TIMING, Arena, arenas, commands, cut_off, reasons, said
from tests.unit.leader.samples import A

ARENAS = arenas(zookeeper=(True, False), suspicion=True)

LONG = 3 * TIMING.long_ttl
PAUSE = Pause(1_700_000_000, "ada-on-host", "a new rack")


def mark(arena: Arena, change: Callable[[Lease], Lease]) -> None:
    arena.files.rename(f"{arena.record}/{arena.lease.name}", f"{arena.record}/{change(arena.lease).name}", "operator")


def pause(arena: Arena) -> None:
    arena.files.make(f"{arena.record}/{PAUSE.name}")
    mark(arena, Lease.as_paused)


def test_the_leader_of_a_paused_job_stays_and_renews(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    pause(arena)
    before = arena.lease.sequence
    arena.run(LONG)
    assert arena.leaders() == [leader]
    assert arena.lease.paused
    assert arena.lease.sequence > before
    assert leader.participant().election.state.paused == PAUSE
    assert standby.participant().election.state.paused == PAUSE


def test_nobody_takes_over_from_a_leader_that_dies_and_somebody_does_when_the_pause_ends(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    pause(arena)
    arena.run(TIMING.long_ttl)
    leader.crash()
    arena.run(LONG)
    assert arena.leaders() == []
    mark(arena, Lease.as_resumed)
    assert arena.until_leader(TIMING.short_ttl * (1 + TIMING.drift) + 3)[0] is standby
    arena.run(TIMING.short_ttl)
    assert not arena.lease.successor


def test_a_process_that_is_gone_is_noted_although_nobody_takes_over_yet(arena: Arena) -> None:
    """The pause may be over before the next look: the history must say that a belief had ended by then."""
    _, standby = arena.start_led("b")
    pause(arena)
    arena.run(TIMING.long_ttl)
    standby.participant().send(ProcessGone(arena.lease.owner))
    arena.run(1)
    assert "suspected" in {kind for _, kind, _ in standby.history}
    assert standby.grants() == []


def test_nobody_takes_over_from_one_that_gives_the_job_back(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    pause(arena)
    leader.run(lambda: leader.contender.release("orders"))
    arena.run(LONG)
    assert arena.leaders() == []
    assert arena.lease.mode is Mode.RELEASED
    assert arena.lease.paused
    mark(arena, Lease.as_resumed)
    assert arena.until_leader(3 * TIMING.renewal)[0] is standby


def test_a_leader_that_lost_its_lease_to_the_clock_alone_takes_it_again_and_the_job_stays_paused(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    pause(arena)
    arena.run(TIMING.long_ttl)
    cut_off(leader)
    arena.run(2 * TIMING.long_ttl)
    assert arena.leaders() == []
    leader.files_link.there = True
    arena.run(2 * TIMING.short_ttl)
    assert arena.leaders() == [leader]
    assert reasons(leader)[-1] == "own"
    assert arena.lease.paused


def test_a_seizure_that_was_decided_before_the_pause_is_refused(arena: Arena) -> None:
    leader, standby = arena.start_led("b")
    arena.run(1)
    before = arena.lease
    pause(arena)
    leader.crash()
    mine = Lease(before.sequence + 1, Mode.HDFS, 6000, A, "", "b")
    with pytest.raises(NotFound):
        arena.files.rename(f"{arena.record}/{before.name}", f"{arena.record}/{mine.name}", "b")
    arena.run(LONG)
    assert standby.grants() == []


def test_standbys_say_once_why_they_wait_and_when_that_is_over(arena: Arena) -> None:
    _, standby = arena.start_led("b")
    pause(arena)
    arena.run(LONG)
    mark(arena, Lease.as_resumed)
    arena.run(LONG)
    waits = "The job is paused by ada-on-host since 2023-11-14T22:13:20Z (a new rack): no takeover."
    assert [each for each in said(standby) if "paused" in each] == [waits, "The job is not paused now."]
    assert standby.participant().election.state.paused is None


def test_a_pause_costs_standbys_no_more_looks_than_a_lease_that_hdfs_carries() -> None:
    arena = Arena(suspicion=True)
    leader, standby = arena.start_led("b")
    pause(arena)
    leader.crash()
    arena.run(LONG)
    asked = commands(standby)
    arena.run(60)
    assert len([each for each in asked if isinstance(each, ListRecord)]) <= 60 / TIMING.renewal + 1


LEASE = Lease(5, Mode.ZOOKEEPER, 60_000, A, "cafe0123-1001", "a")


def test_the_mark_is_read_back_and_is_nobodys_name() -> None:
    paused = LEASE.as_paused()
    assert Lease.parse(paused.name) == paused
    assert (paused.paused, paused.sequence, paused.owner) == (True, 6, A)
    assert not LEASE.paused
    assert LEASE.asked_to("b").as_paused().successor == PAUSED
    assert LEASE.asked_to_look().as_paused().successor == PAUSED
    assert paused.asked_to_look().paused, "a request does not end the pause"


@pytest.mark.parametrize(("mode", "successor"), [(Mode.ZOOKEEPER, LOOK), (Mode.HDFS, LOOK), (Mode.RELEASED, "")])
def test_a_holder_finds_the_end_of_a_pause_like_a_request(mode: Mode, successor: str) -> None:
    assert Lease(5, mode, 0, A, "", "a", PAUSED).as_resumed() == Lease(6, mode, 0, A, "", "a", successor, marks=1)


def test_for_readers_nobody_leads_a_paused_job_that_was_given_back() -> None:
    rival = RivalLease("", TIMING)
    rival.observe(Lease(5, Mode.RELEASED, 0, A, "", "a", PAUSED), 100.0)
    assert rival.expired_reason(100.0) == "released"


@pytest.mark.parametrize(("successor", "heard"), [("", True), (ANYBODY, True), ("b", True), (PAUSED, False)])
def test_a_release_that_is_heard_is_not_seized_if_it_says_that_the_job_is_paused(successor: str, heard: bool) -> None:
    rival = RivalLease("b", TIMING)
    rival.observe(LEASE, 100.0)
    assert rival.may_become(Lease(7, Mode.RELEASED, 0, A, "", "a", successor)) is heard


def test_a_paused_lease_is_read_as_often_as_one_is_renewed() -> None:
    rival = RivalLease("b", TIMING)
    rival.observe(Lease(5, Mode.HDFS, 6000, A, "", "a", PAUSED), 100.0)
    assert rival.poll_interval(Attestation()) == TIMING.renewal


def test_a_pause_is_told_to_the_leader_like_a_request() -> None:
    arena = Arena()
    (leader,) = arena.start_led()
    told: list[object] = []
    leader.participant()._observer = lambda _, happened: told.append(happened)
    pause(arena)
    arena.run(TIMING.long_ttl)
    assert any(isinstance(each, RequestsFound) for each in told)
    assert any(isinstance(each, Log) and "paused" in each.sentence for each in told)
