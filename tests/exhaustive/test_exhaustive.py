"""Every interleaving of claim, renew and switch by two contenders, within bounds: never do two of them lead.

The elections are those of production. What the stores, the network and the clocks may do is in
:mod:`tests.exhaustive.model`; the bounds of each search are below. Without any disturbance the search has no bound: it
ends when nothing is new. A disturbance may begin in each of those situations, at any point of it, and lasts as long as
it likes; from there on the run is followed for some ticks of three seconds (the short ttl is two of them).

In every situation: at most one contender leads, at most one thinks that nobody else can, and the lease is its own; a
claim raises the epoch by one; what is granted is the leader directory, once; and ``Election.validate``.

Equal situations are merged by renaming what only grows and forgetting what has passed, and of steps that cannot see
each other one order is followed. Both are checked here too: what is forgotten changes nothing, what is left out leads
nowhere else.

Faults are planted to see that the search can fail. One of those that come to mind is harmless to belief, and the search
proves it: a grant that does not look at the clock is announced, but nobody believes in it, because belief *is* the
clock. It is found by what was granted. The same mistake made where it does harm is a lease that counts from its answer.
A check of an attestation that was made *before* the lease was read cannot be planted: the lease names the node to be
asked for. But an answer for an earlier node can be taken for the present one's, and that is found.
"""

import random
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import pytest

from tests.exhaustive.model import FAST, SLOW, Action, Bounds, State
from tests.exhaustive.mutants import MUTANTS
from tests.exhaustive.naming import SEQUENCE, Renamer, Renaming
from tests.exhaustive.search import Found, Search
from tests.exhaustive.timeline import timeline
from tests.exhaustive.world import World

UNEVEN = (SLOW, FAST)
"""A slow holder and a fast standby come closest to each other; the other way round is searched with it."""

SEARCHES = {
    "two disturbances of one contender": Bounds(UNEVEN, disturbances=2, ticks=3, disturbed=(0,)),
    "two disturbances": Bounds(UNEVEN, disturbances=2, ticks=1, abandoned=1),
    "one disturbance, followed for longer": Bounds(UNEVEN, ticks=4),
    "all come back, leaders step down": Bounds(comes_back=True, steps_down=True),
}
ONE = Bounds(UNEVEN, ticks=3, disturbed=(0,), abandoned=1)
TWO = replace(ONE, disturbances=2)
HUNTS = {
    "belief not capped when a renewal is sent": TWO,
    "unknown taken for refused": TWO,
    "unknown taken for done": ONE,
    "granted whatever the clock says": ONE,
    "counted from the answer": ONE,
    "any node that is gone": ONE,
    "belief not limited by the confirmation": ONE,
    "a holder without drift": ONE,
}
HARMLESS = "granted whatever the clock says"


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
    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    looks = {name: pool.submit(look, name) for name in SEARCHES}
    faults = [*((name, False) for name in HUNTS), (HARMLESS, True)]
    yield Running(looks, {(name, strict): pool.submit(hunt, name, strict=strict) for name, strict in faults})
    pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SEARCHES)
def test_never_do_two_lead(name: str, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    found = running.looks[name].result()
    with capsys.disabled():
        print(f"\n  {name}: {found}", flush=True)  # noqa: T201  # how much was searched is the result
    assert not found.violation, timeline(SEARCHES[name], found)
    assert found.states > 100_000, "too little for a search that means anything"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", HUNTS)
def test_a_planted_fault_is_found(name: str, running: Running, capsys: pytest.CaptureFixture[str]) -> None:
    found, story = running.hunts[name, False].result()
    with capsys.disabled():
        print(f"\n\n  {name}: {found}\n{story}", flush=True)  # noqa: T201
    if name == HARMLESS:
        assert not found.violation
        found, story = running.hunts[name, True].result()
        with capsys.disabled():
            print(f"\n  {name}, grants judged too: {found}\n{story}", flush=True)  # noqa: T201
        assert "granted an epoch that is over" in found.violation
    else:
        assert found.violation.startswith("two contenders")


# --- is the search itself right?


def walk(bounds: Bounds, seed: int, steps: int) -> Iterator[tuple[State, State]]:
    """One random path, with and without forgetting."""
    chance = random.Random(seed)  # noqa: S311  # a walk that can be repeated
    merged, exact = World(bounds), World(bounds, exact=True)
    begin = chance.randrange(len(merged.starts()))
    one, other = merged.starts()[begin], exact.starts()[begin]
    for _ in range(steps):
        may = list(merged.actions(one))
        assert may == list(exact.actions(other))
        action = chance.choice([each for each in may if not each.cost or chance.random() < 0.2] or may)
        one, other = merged.apply(one, action), exact.apply(other, action)
        yield one, other


@pytest.mark.parametrize("rates", [(1.0, 1.0), (SLOW, FAST), (FAST, SLOW)])
def test_what_is_forgotten_changes_nothing(rates: tuple[float, float]) -> None:
    bounds = Bounds(rates, comes_back=True, steps_down=True)
    for seed in range(25):
        for merged, exact in walk(bounds, seed, 120):
            assert _shown(merged) == _shown(exact)


def _shown(state: State) -> list[object]:
    """What can be seen of a situation whatever the names are."""
    minds = [side.parts.mind for side in state.sides]
    shown: list[object] = [state.granted, state.store.lease.mode, state.store.lease.ttl_ms, len(state.abandoned)]
    shown += [(mind.leads, mind.holds, mind.frozen.phase, type(mind.command)) for mind in minds]
    return shown


def test_what_is_left_out_leads_nowhere_else() -> None:
    bounds = Bounds(UNEVEN, ticks=1, disturbed=(0,))
    full, reduced = ends_of_ticks(World(bounds, reduced=False)), ends_of_ticks(World(bounds))
    assert len(full) > 100
    assert full == reduced


def ends_of_ticks(world: World) -> set[object]:
    """All situations in which time may pass, and by what disturbances."""
    ends: set[object] = set()
    known, waiting = set(), [(state, 0, 0) for state in world.starts()]
    while waiting:
        situation = state, spent, ticks = waiting.pop()
        if situation in known or ticks > world.bounds.ticks:
            continue
        known.add(situation)
        for action, after in world.successors(state, world.bounds.disturbances - spent):
            if action == Action("time"):
                ends.add((spent, *_contents(state)))
            waiting.append((after, spent + action.cost, ticks + (action.kind == "time" and spent > 0)))
    return ends


def _contents(state: State) -> list[object]:
    """A situation by value, as two worlds have no objects in common; but for the numbers of leases that are gone."""
    unnumbered = Renamer(Renaming(sequences=tuple((number, 0) for number in range(2 * SEQUENCE))))
    sides = [side.parts._replace(mind=unnumbered.mind(side.parts.mind.frozen)) for side in state.sides]  # type: ignore[arg-type]
    return [state.granted, state.store.directory, state.store.lease, state.abandoned, *sides]
