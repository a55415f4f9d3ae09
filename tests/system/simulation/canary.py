"""A canary: a mutant of the protocol that breaks one rule. A simulator that misses one proves nothing.

The plans are those that test the protocol itself. ``within`` is about three times the number of seeds that a canary
needed when it was measured, so that a change of the plans does not fail a test by chance.

Two rules have no canary, because other rules defend them too; this was tried. A standby asks for the leader's node with
a ``sync``: its own confirmations bring its server up to date as well. A wiped ZooKeeper is not taken for dead sessions:
a new session has to settle first, and by then the leader has switched its lease or its belief is over. A third rule, by
which a confirmation is two syncs, needs more luck than a thousand seeds have; its plan is among the regressions.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Self
from unittest.mock import patch

from tests.system.simulation.drawing import draw
from tests.system.simulation.plan import Plan

Patch = AbstractContextManager[object]


@dataclass(frozen=True)
class Canary:
    """A rule that is broken.

    Attributes:
        name: the mutant's mistake.
        patches: context managers that plant the mistake.
        breaks: guarantees; a run must break one of them.
        within: number of seeds, from 0, within which it must show.
        plan: draws the plan of a seed; most mutants show in those that test the protocol itself.
    """

    name: str
    patches: Callable[[], list[Patch]]
    breaks: frozenset[str]
    within: int
    plan: Callable[[int], Plan] = draw

    def __enter__(self) -> Self:
        stack = ExitStack()
        for each in self.patches():
            stack.enter_context(each)
        object.__setattr__(self, "_stack", stack)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()  # type: ignore[attr-defined]


def of(owner: object, **replaced: object) -> Callable[[], list[Patch]]:
    """Return what replaces these attributes."""
    return lambda: [patch.object(owner, name, value) for name, value in replaced.items()]


S1, S3, S4, S5 = frozenset({"S1"}), frozenset({"S3"}), frozenset({"S4"}), frozenset({"S5"})
R1, R2, R3, R4 = frozenset({"R1"}), frozenset({"R2"}), frozenset({"R3"}), frozenset({"R4"})
HAND, KEPT, HEARD, PAUSES, BARS = (frozenset({each}) for each in ("HAND", "KEPT", "HEARD", "PAUSED", "BARRED"))
L1, FENCE = frozenset({"L1"}), frozenset({"FENCE"})
