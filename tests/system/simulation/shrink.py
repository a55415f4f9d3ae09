"""Shrinking: makes a plan smaller for as long as it still breaks the same promise."""

from collections.abc import Callable
from dataclasses import replace

from tests.system.simulation.plan import Plan

MAX_TRIES = 300


def shrink(plan: Plan, breaks: Callable[[Plan], bool]) -> Plan:
    """Leave out steps, readers, jitter and drift as long as the plan still breaks the same promise.

    Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002), without its guarantees.
    """
    tries = 0

    def still(candidate: Plan) -> bool:
        nonlocal tries
        tries += 1
        return tries <= MAX_TRIES and breaks(candidate)

    size = max(1, len(plan.steps) // 2)
    while True:
        begin, shrunk = 0, False
        while begin < len(plan.steps):
            candidate = plan.without(set(range(begin, begin + size)))
            if still(candidate):
                plan, shrunk = candidate, True
            else:
                begin += size
        if size == 1 and not shrunk:
            break
        size = max(1, size // 2)
    for change in (
        {"end": "nothing"},
        {"jitter": 0.0},
        {"stubborn": False},
        {"hangs": False},
        {"rates": plan.rates[:2]},
        {"rates": tuple(1.0 for _ in plan.rates)},
        {"agent": False},
        {"readers": 0},
        {"readers": 1},
        {"servers": min(1, plan.servers), "tick": 0.0},
    ):
        candidate = replace(plan, **change)
        if candidate != plan and still(candidate):
            plan = candidate
    return plan
