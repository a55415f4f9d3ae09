"""Canaries of the store: a root that lies about renames is not tried before somebody contends there.

A store that says "refused" of what it has done has none: who believes it never leads, tried or not.
"""

from collections.abc import Callable

from tests.system.simulation import stores
from tests.system.simulation.canary import S1, S3, Canary, of
from tests.system.simulation.plan import Plan, Step


def draw_lying(store: str) -> Callable[[int], Plan]:
    """Return what draws a plan at such a store, where the leader crashes if there is one."""
    crash = Step(15.0, "crash", "leader", 5.0)
    return lambda seed: Plan(seed, seconds=40.0, rates=(1.0, 1.0, 1.0), store=store, steps=(crash,))


_untried = of(stores, broken=lambda _: "")

STORES = (
    Canary("a store that says done and has not is not tried", _untried, S3, 5, draw_lying("SaysDone")),
    Canary("a store whose refusals count as done is not tried", _untried, S1, 5, draw_lying("SaysDoneIfRefused")),
    Canary("a store that replaces is not tried", _untried, S1, 15, draw_lying("Replaces")),
)
