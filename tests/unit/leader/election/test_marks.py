"""Operators' marks on the lease of a dead leader: they hold up nobody."""

import pytest

from tests.system.simulation.commands import seizure
from tests.system.simulation.process import Fault
from tests.unit.leader.arena import TIMING, Arena

EXPIRY = TIMING.short_ttl * (1 + TIMING.drift)


@pytest.mark.parametrize("every", [TIMING.poll / 2, TIMING.short_ttl / 3])
def test_a_dead_leader_that_is_asked_again_and_again_is_replaced_in_time(every: float) -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    leader.crash()

    def ask() -> None:
        if not standby.leads():
            arena.ask_to_look()
            arena.world.after(every, ask)

    ask()
    successor, seconds = arena.until_leader(60)
    assert successor is standby
    assert seconds < EXPIRY + TIMING.poll, "it counts from the last renewal"


def test_a_seizure_that_a_mark_refused_is_made_again_without_a_pause() -> None:
    arena = Arena(zookeeper=False)
    leader, standby = arena.start_led("b")
    leader.crash()
    times: list[float] = []

    def mark() -> None:
        times.append(arena.world.now)
        if len(times) < 4:
            standby.faults.append(Fault(seizure, then=mark))
        arena.ask_to_look()

    standby.faults.append(Fault(seizure, then=mark))
    arena.until_leader(60)
    assert len(times) == 4, "each of these was refused"
    assert arena.world.now - times[0] < TIMING.retry
