"""A contender that an operator has barred: it takes nothing over until the bar ends, and others are not held up."""

import pytest

from leader.layout.bar import Bar
from leader.layout.lease import Mode
from leader.layout.names import RECORD
from tests.system.simulation.process import Process
from tests.unit.leader.arena import TIMING, Arena, arenas, commands, cut_off, said

ARENAS = arenas(zookeeper=(True, False), suspicion=True)

LONG = 3 * TIMING.long_ttl


def bar(arena: Arena, contender: str, seconds: float = 10 * LONG) -> str:
    """Bar a contender as ``ha host drain`` does: the entry first, then the mark that refuses what was "
    "decided before."""
    entry = f"{arena.record}/{Bar(contender, int(arena.world.now + seconds), 'ada', 'new disks').name}"
    arena.files.make(entry)
    arena.ask_to_look()
    return entry.rpartition("/")[2]


@pytest.mark.parametrize("goes", ["crash", "release", "expire"])
def test_one_that_is_barred_takes_nothing_over_and_another_does(arena: Arena, goes: str) -> None:
    leader, barred, other = arena.start_led("b", "c")
    bar(arena, "b")
    arena.run(TIMING.long_ttl)
    end(leader, goes)
    arena.run(LONG)
    assert arena.leaders() == [other]
    assert barred.grants() == []


def test_a_bar_of_a_host_holds_for_a_process_that_has_named_itself_there(arena: Arena) -> None:
    own = "host-b-4711-0a1b2c"
    leader, barred, other = arena.start_led(own, "host-c-4711-0a1b2c")
    bar(arena, "host-b")
    arena.run(TIMING.long_ttl)
    leader.crash()
    arena.run(LONG)
    assert arena.leaders() == [other]
    assert barred.grants() == []
    assert any("it does not take over" in each for each in said(barred))


def end(leader: Process, how: str) -> None:
    if how == "crash":
        leader.crash()
    elif how == "release":
        leader.contend_again = False
        leader.run(lambda: leader.contender.release("orders"))
    else:
        cut_off(leader)


@pytest.mark.parametrize("goes", ["crash", "release", "expire"])
def test_it_takes_over_when_its_bar_ends_and_not_before(arena: Arena, goes: str) -> None:
    leader, barred = arena.start_led("b")
    bar(arena, "b", LONG)
    until = int(arena.world.now + LONG)
    end(leader, goes)
    arena.run(until - arena.world.now - 0.1)
    assert arena.leaders() == []
    assert arena.until_leader(3.0)[0] is barred


def test_it_takes_over_once_the_entry_is_gone(arena: Arena) -> None:
    leader, barred = arena.start_led("b")
    entry = bar(arena, "b")
    leader.crash()
    arena.run(LONG)
    assert arena.leaders() == []
    arena.files.delete(f"{arena.record}/{entry}")
    assert arena.until_leader(TIMING.long_ttl)[0] is barred
    told = [each for each in said(barred) if "barred" in each]
    assert [each.partition(" until")[0] for each in told] == [
        "This contender is barred by ada",
        "This contender is no longer barred.",
    ]
    assert told[0].endswith("(new disks): it does not take over.")


def test_a_release_that_is_heard_is_not_seized_by_one_that_is_barred() -> None:
    arena = Arena(suspicion=True)
    leader, barred, other = arena.start_led("b", "c")
    bar(arena, "b")
    arena.run(TIMING.renewal)
    other.crash()
    leader.contend_again = False
    leader.run(lambda: leader.contender.release("orders"))
    arena.run(LONG)
    assert arena.lease.mode is Mode.RELEASED
    assert barred.grants() == []


def test_a_bar_goes_along_with_every_change_of_leader(arena: Arena) -> None:
    first, barred, other = arena.start_led("b", "c")
    entry = bar(arena, "b")
    arena.run(TIMING.long_ttl)
    first.crash()
    assert arena.until_leader(LONG)[0] is other
    arena.run(TIMING.long_ttl)
    assert entry in arena.files.list(f"orders/{arena.directory.name}/{RECORD}")
    other.crash()
    arena.run(LONG)
    assert arena.leaders() == []
    assert barred.grants() == []


def test_a_leader_that_is_barred_stays_until_it_is_asked_to_go(arena: Arena) -> None:
    leader, other = arena.start_led("b")
    bar(arena, "a")
    arena.run(LONG)
    assert arena.leaders() == [leader]
    arena.ask_to_hand_over("b")
    leader.contend_again = True
    assert arena.until_leader(LONG, besides=leader)[0] is other
    other.crash()
    arena.run(LONG)
    assert arena.leaders() == []


def test_a_leader_that_is_barred_and_lost_its_lease_does_not_take_it_again(arena: Arena) -> None:
    leader, _ = arena.start_led("b")
    bar(arena, "a")
    bar(arena, "b")
    arena.run(TIMING.long_ttl)
    end(leader, "expire")
    arena.run(2 * TIMING.long_ttl)
    leader.files_link.there = True
    arena.run(2 * TIMING.long_ttl)
    assert arena.leaders() == []


def test_a_bar_costs_nothing_while_the_leader_leads() -> None:
    counts = []
    for with_bar in (False, True):
        arena = Arena(suspicion=True)
        _, standby = arena.start_led("b")
        if with_bar:
            bar(arena, "b")
        arena.run(TIMING.long_ttl)
        calls = commands(standby)
        arena.run(10 * TIMING.long_ttl)
        counts.append(len(calls))
    assert counts[1] <= counts[0]
