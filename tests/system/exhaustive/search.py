"""Search: visits every situation within the bounds, until a violation or until nothing is new."""

import gc
from dataclasses import dataclass, field
from time import process_time

from tests.system.exhaustive.model import Action, State, Violation
from tests.system.exhaustive.world import World

Key = tuple[int, int, int]
"""Ticks since the first disturbance, disturbances, steps: in this order, so what is found first is the simplest."""


@dataclass
class Found:
    """The result of a search.

    Attributes:
        states: number of situations.
        transitions: number of ways from one to the next.
        minds: number of states of one election among them.
        depth: steps on the longest way that was followed, or to the violation.
        seconds: of processor time.
        violation: the violation; empty if there is none.
        start: with which of the world's starts the path begins.
        path: events that lead to the violation.
    """

    states: int = 0
    transitions: int = 0
    minds: int = 0
    depth: int = 0
    seconds: float = 0.0
    violation: str = ""
    start: int = 0
    path: list[Action] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.states:,} states, {self.transitions:,} transitions, {self.minds:,} states of an election, "
            f"{self.depth} steps deep, {self.seconds:.0f} s of processor time: {self.violation or 'no violation'}"
        )


class Search:
    def __init__(self, world: World) -> None:
        self._world = world
        self._found = Found()
        self._came_from: dict[State, tuple[int, State | None, Action | None]] = {}
        """Of each situation: the fewest disturbances that lead to it so far, and the last step there."""
        self._waiting: dict[Key, list[tuple[State, State | None, Action | None]]] = {}

    def run(self) -> Found:
        began = process_time()
        gc.disable()  # nothing is ever thrown away, so there is no garbage
        try:
            self._run()
        finally:
            gc.enable()
        self._found.states = len(self._came_from)
        self._found.minds = len(self._world.minds)
        self._found.seconds = process_time() - began
        return self._found

    def _run(self) -> None:
        starts = self._world.starts()
        self._waiting[0, 0, 0] = [(state, None, None) for state in starts]
        while self._waiting:
            key = min(self._waiting)
            for state, parent, action in self._waiting.pop(key):
                known = self._came_from.get(state)
                if known is not None and known[0] <= key[1]:
                    continue
                self._came_from[state] = (key[1], parent, action)
                try:
                    self._expand(state, key)
                except Violation as violation:
                    self._trace(starts, state, violation)
                    return

    def _expand(self, state: State, key: Key) -> None:
        ticks, spent, depth = key
        bounds, found = self._world.bounds, self._found
        found.depth = max(found.depth, depth)
        for action, after in self._world.successors(state, bounds.disturbances - spent):
            found.transitions += 1
            total = spent + action.cost
            passed = ticks + (action.kind == "time" and spent > 0)
            known = self._came_from.get(after)
            if passed <= bounds.ticks and (known is None or known[0] > total):
                self._waiting.setdefault((passed, total, depth + 1), []).append((after, state, action))

    def _trace(self, starts: list[State], state: State, violation: Violation) -> None:
        sentence, last = violation.args
        path = [last]
        while (step := self._came_from[state])[1] is not None:
            _, state, action = step  # type: ignore[assignment]  # a step has both
            path.append(action)
        self._found.violation, self._found.path = sentence, path[::-1]
        self._found.depth, self._found.start = len(path), starts.index(state)
