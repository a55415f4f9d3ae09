"""Exhaustive search through all interleavings of two contenders, within bounds: two never lead at once.

The elections are those of production. :mod:`tests.system.exhaustive.model` says what the stores, the network and the
clocks may do; the bounds of each search are below. Without any disturbance the search has no bound: it ends when
nothing is new. A disturbance may begin in each of those situations, at any point of it, and lasts as long as
it likes; from there on the run is followed for some ticks of three seconds (the short ttl is two of them).

In every situation: at most one contender leads, at most one thinks that nobody else can, and the lease is one of those
that it counts on; a claim raises the epoch by one; the leader directory is granted, once; ``ElectionState.validate``
holds. Where the NameNode may forget, both the lease that is listed and the one that is written must be counted on, and
only a leader directory that is written is granted: belief and grants rest on nothing that can be forgotten.

Equal situations are merged by renaming numbers that only grow and by forgetting the past. Of steps that cannot see each
other only one order is followed. Both are checked here too: forgetting changes nothing, and the orders left out lead
nowhere else.

The search that forgets with a longer ttl has found a hole in the protocol itself, which is planted here again since it
was mended: a renewal that was shown and forgotten was sent once more under its old name. So what had been built on the
first of them, and was dropped from the belief when the second was acknowledged, could still be executed.

Faults are planted to see that the search can fail. One of those that come to mind is harmless to belief, and the search
proves it: a grant that does not look at the clock is announced, but nobody believes in it, because belief *is* the
clock. It is found by what was granted. The same mistake made where it does harm is a lease that counts from its answer.
The same holds for a claim that is taken for done because it is listed: the lease is the contender's own all the same.
The mended hole takes more disturbances before two believe; the check that the lease is counted on finds it.
A check of an attestation that was made *before* the lease was read cannot be planted: the lease names the node to be
asked for. But an answer for an earlier node can be taken for the present one's, and that is found.
"""

import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace

import pytest

from leader.election.events import Rename
from tests.background import BOUNDED_BY_WORK
from tests.pools import LIMIT_S, pool_in_background
from tests.system.exhaustive.model import FAST, SLOW, Action, Bounds, State
from tests.system.exhaustive.mutants import MUTANTS
from tests.system.exhaustive.naming import SEQUENCE, Renamer, Renaming
from tests.system.exhaustive.search import Found, Search
from tests.system.exhaustive.timeline import timeline
from tests.system.exhaustive.world import World

SESSION = re.compile(r"0000000[01]-0000-0000-0000-(?!0{12})[0-9a-f]{12}")
PROCESSOR_S = 900
"""Of each of the two processes that search; all that is below takes them 180 s each."""
UNEVEN = (SLOW, FAST)
"""A slow holder and a fast standby come closest to each other; the other way round is searched with it."""

SEARCHES = {
    "two disturbances of one contender": Bounds(UNEVEN, disturbances=2, ticks=3, disturbed=(0,)),
    "the NameNode forgets": Bounds(UNEVEN, disturbances=2, ticks=2, disturbed=(0,), abandoned=1, forgets=True),
    "the NameNode forgets, a longer ttl": Bounds(
        UNEVEN, disturbances=2, ticks=2, disturbed=(0,), abandoned=1, forgets=True, long_ttl=18.0
    ),
    "two disturbances": Bounds(UNEVEN, disturbances=2, ticks=1, abandoned=1),
    "one disturbance, followed for longer": Bounds(UNEVEN, ticks=4),
    "all come back, leaders step down": Bounds(comes_back=True, steps_down=True),
    "a stranger deletes nodes": Bounds(UNEVEN, ticks=4, disturbed=(0,), abandoned=1, strangers=True),
    "a process ends and the other is told": Bounds(UNEVEN, disturbances=2, disturbed=(0,), abandoned=1, ends=True),
}
ONE = Bounds(UNEVEN, ticks=3, disturbed=(0,), abandoned=1)
TWO = replace(ONE, disturbances=2)
STRANGE = replace(ONE, ticks=1, strangers=True)
FORGETFUL = replace(TWO, forgets=True)
HUNTS = {
    "belief not capped when a renewal is sent": TWO,
    "unknown taken for refused": TWO,
    "unknown taken for done": ONE,
    "granted whatever the clock says": ONE,
    "counted from the answer": ONE,
    "any node that is gone": ONE,
    "belief not limited by the confirmation": ONE,
    "a holder without drift": ONE,
    "a renewal that is listed is taken for done": FORGETFUL,
    "a seizure that is listed is taken for done": FORGETFUL,
    "a claim that is listed is taken for done": replace(FORGETFUL, ticks=1),
    "a renewal that another was built on is sent once more": SEARCHES["the NameNode forgets, a longer ttl"],
    "a lease is seized and nobody is asked": STRANGE,
    "a leader that answers has no time to renew": STRANGE,
}
HARMLESS = {
    "granted whatever the clock says": "granted an epoch that is over",
    "a claim that is listed is taken for done": "granted an epoch that may be forgotten",
    "a renewal that another was built on is sent once more": "not one that it counts on",
}
"""Faults that make no two contenders believe within these bounds; they are found by judging grants and leases too."""
SEARCHED = ("granted whatever the clock says", "a claim that is listed is taken for done")
"""Those of which the search shows that, too; for the third it would take as long as for the protocol itself."""
STRANGERS = ("a lease is seized and nobody is asked", "a leader that answers has no time to renew")
"""Faults that only show where a stranger deletes nodes."""


def look(name: str) -> Found:
    return Search(World(SEARCHES[name])).run()


def hunt(name: str, *, strict: bool = False) -> tuple[Found, str]:
    bounds = replace(HUNTS[name], strict=strict)
    with MUTANTS[name].planted():
        found = Search(World(bounds)).run()
        return found, timeline(bounds, found) if found.violation else ""


@dataclass
class Running:
    """All searches, two at a time, the longest first."""

    looks: dict[str, Future[Found]]
    hunts: dict[tuple[str, bool], Future[tuple[Found, str]]]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with pool_in_background(2, PROCESSOR_S) as pool:
        looks = {name: pool.submit(look, name) for name in SEARCHES}
        faults = [
            *((name, False) for name in HUNTS if name in SEARCHED or name not in HARMLESS),
            *((name, True) for name in HARMLESS),
        ]
        yield Running(looks, {(name, strict): pool.submit(hunt, name, strict=strict) for name, strict in faults})


@pytest.mark.slow
@BOUNDED_BY_WORK
@pytest.mark.parametrize("name", SEARCHES)
def test_never_do_two_lead(name: str, running: Running, tell: Callable[[str], None]) -> None:
    found = running.looks[name].result(LIMIT_S)
    tell(f"{name}: {found}")  # the extent of the search is its result
    assert not found.violation, timeline(SEARCHES[name], found)
    assert found.states > 100_000, "too little for a search that means anything"


@pytest.mark.slow
@BOUNDED_BY_WORK
@pytest.mark.parametrize("name", HUNTS)
def test_a_planted_fault_is_found(name: str, running: Running, tell: Callable[[str], None]) -> None:
    if name in SEARCHED:
        assert not running.hunts[name, False].result(LIMIT_S)[0].violation
    found, story = running.hunts[name, name in HARMLESS].result(LIMIT_S)
    tell(f"{name}: {found}\n{story}")
    assert HARMLESS.get(name, "two contenders") in found.violation


@pytest.mark.parametrize("name", STRANGERS)
def test_some_faults_show_only_where_strangers_delete_nodes(name: str) -> None:
    with MUTANTS[name].planted():
        assert not Search(World(replace(HUNTS[name], strangers=False))).run().violation


def test_a_sleep_that_is_taken_for_an_end_is_found() -> None:
    bounds = Bounds(UNEVEN, ticks=3, disturbed=(0,), abandoned=1, ends=True, rash=True)
    found = Search(World(bounds)).run()
    assert found.violation.startswith("two contenders")
    assert "is told that the other's process is gone" in timeline(bounds, found)


def walk(bounds: Bounds, seed: int, steps: int) -> Iterator[tuple[State, State]]:
    chance = random.Random(seed)  # noqa: S311  # a walk that can be repeated
    merged, exact = World(bounds), World(bounds, exact=True)
    begin = chance.randrange(len(merged.starts()))
    one, other = merged.starts()[begin], exact.starts()[begin]
    for _ in range(steps):
        may = list(merged.actions(one))
        assert may == list(exact.actions(other))
        forget = [each for each in may if each.kind == "forget" and chance.random() < 0.5]
        action = chance.choice(forget or [each for each in may if not each.cost or chance.random() < 0.2] or may)
        one, other = merged.apply(one, action), exact.apply(other, action)
        yield one, other


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("rates", [(1.0, 1.0), (SLOW, FAST), (FAST, SLOW)])
def test_forgetting_the_past_changes_nothing(rates: tuple[float, float], *, forgets: bool) -> None:
    bounds = Bounds(rates, comes_back=True, steps_down=True, forgets=forgets, ends=True, strangers=forgets)
    for seed in range(25):
        for merged, exact in walk(bounds, seed, 120):
            assert _shown(merged) == _shown(exact)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_call_that_is_dropped_could_never_be_executed(*, forgets: bool) -> None:
    bounds = Bounds(UNEVEN, comes_back=True, steps_down=True, forgets=forgets, abandoned=99)
    dropped_in_all = 0
    for seed in range(25):
        given_up: set[Rename] = set()
        for _, exact in walk(bounds, seed, 120):
            given_up.update(exact.abandoned)
            dropped = given_up.difference(exact.abandoned)
            assert not {exact.store.home, exact.store.entry}.intersection(late.source for late in dropped)
            dropped_in_all += len(dropped)
    assert dropped_in_all > 1000


def _shown(state: State) -> list[object]:
    """Return the visible part of a situation, without names."""
    minds = [side.parts.mind for side in state.sides]
    shown: list[object] = [state.granted, len(state.abandoned)]
    shown += [(store.lease.mode, store.lease.ttl_ms) for store in (state.store, state.durable)]
    shown += [(mind.leads, mind.holds, mind.frozen.phase, type(mind.command)) for mind in minds]
    return shown


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(UNEVEN, ticks=1, disturbed=(0,)),
        Bounds(UNEVEN, disturbances=2, ticks=0, disturbed=(0,), forgets=True),
        pytest.param(replace(FORGETFUL, ticks=1), marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_the_orders_left_out_lead_nowhere_else(bounds: Bounds) -> None:
    full, reduced = ends_of_ticks(World(bounds, reduced=False)), ends_of_ticks(World(bounds))
    assert len(full) > 100
    assert full == reduced


def ends_of_ticks(world: World) -> set[object]:
    """All situations in which time may pass, and by what disturbances; but not what cannot be forgotten any more."""
    ends: set[object] = set()
    known, waiting = set(), [(state, 0, 0) for state in world.starts()]
    while waiting:
        situation = state, spent, ticks = waiting.pop()
        if situation in known or ticks > world.bounds.ticks:
            continue
        known.add(situation)
        for action, after in world.successors(state, world.bounds.disturbances - spent):
            if action == Action("time") and (spent < world.bounds.disturbances or state.durable is state.store):
                ends.add((spent, *_contents(state)))
            waiting.append((after, spent + action.cost, ticks + (action.kind == "time" and spent > 0)))
    return ends


def _contents(state: State) -> tuple[bool, str]:
    """A situation by value, as two worlds have no objects in common; but for the names of what is gone.

    A session id is given out again once nobody mentions it, so two orders can give the same session different ones.
    """
    unnumbered = Renamer(Renaming(sequences=tuple((number, 0) for number in range(2 * SEQUENCE))))
    sides = [side.parts._replace(mind=unnumbered.mind(side.parts.mind.frozen)) for side in state.sides]  # type: ignore[arg-type]
    stores = [(store.directory, store.lease) for store in (state.store, state.durable)]
    sessions: dict[str, str] = {}
    text = repr([*stores, state.abandoned, *sides])
    return state.granted, SESSION.sub(lambda found: sessions.setdefault(found[0], f"session {len(sessions)}"), text)
