"""Corners: plans in which chance has little part. Each brings about one condition that rules of the protocol are for.

A share of all seeds takes one of them: faults that are drawn one by one meet these conditions in one run of thousands.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from leader.timing import Timing
from tests.system.simulation.plan import TIMINGS, Plan, Step

CORNERS = 0.12
"""Share of the seeds that take such a plan."""

FAST = 4.0
"""The speed of a clock that errs by much more than the bound."""


TOO_LONG = 0.3
"""Share of the new leaders that sleep until their lease has run out, before they know of their claim."""

Draw = Callable[[int, random.Random], Plan]


def always(draw: Draw) -> Callable[[int], Plan]:
    """Return what draws one of these plans for every seed."""
    return lambda seed: draw(seed, random.Random(f"{draw.__name__} {seed}"))  # noqa: S311


def draw_corner(seed: int) -> Plan | None:
    """Draw such a plan for this seed; None for most seeds."""
    dice = random.Random(f"corner {seed}")  # noqa: S311  # replayed, not secret
    return dice.choice(ALL)(seed, dice) if dice.random() < CORNERS else None


def _draw_plan(seed: int, dice: random.Random, numbers: tuple[int, ...], servers: int) -> Plan:
    timing = Timing(**TIMINGS[dice.choice(numbers)])
    ends = 1 - timing.drift, 1 + timing.drift
    return Plan(
        seed,
        seconds=40.0,
        timing=timing,
        rates=tuple(dice.choice(ends) for _ in range(dice.choice((2, 3)))),
        servers=servers,
        tick=timing.session_timeout * 0.5 if servers > 1 else 0.0,
        stubborn=dice.random() < 0.3,
    )


def draw_forgotten_renewal(seed: int, dice: random.Random) -> Plan:
    """Draw a renewal that is shown, forgotten and sent again; then its sender is cut off.

    Standbys count from when they first saw its name, and so must its sender.
    """
    plan = _draw_plan(seed, dice, (0, 1, 2), 0)
    shown = plan.timing.call_timeout * dice.uniform(0.4, 0.98)
    gone = 2 * plan.timing.short_ttl
    then = "fate renewal answered 0 isolate"
    step = Step(round(dice.uniform(8, 16), 3), "fate", "", gone, ("renewal", "unwritten", f"{shown:.3f}", then))
    return replace(plan, steps=(step,))


def draw_lapse(seed: int, dice: random.Random) -> Plan:
    """Draw a leader whose belief runs out while ZooKeeper is down, which nobody seizes for long; its driver hangs."""
    plan = _draw_plan(seed, dice, (0, 1, 2), dice.choice((1, 3)))
    at, timeout = round(dice.uniform(12, 16), 3), plan.timing.session_timeout
    gone = max(timeout, plan.timing.short_ttl) * 1.25
    steps = (
        Step(round(at - timeout * dice.uniform(0.01, 0.1), 3), "cut", "leader", round(gone, 3), ("files", "both")),
        Step(at, "outage", "", 3 * timeout),
    )
    return replace(plan, hangs=True, steps=steps)


def draw_slept(seed: int, dice: random.Random) -> Plan:
    """Draw a new leader that sleeps for about a session timeout, then has ZooKeeper attest its lease, and is cut off.

    The quorum may end its session at that moment, because no server has told it yet that the leader is back.
    """
    plan = _draw_plan(seed, dice, (0, 3), 3)
    timeout = plan.timing.session_timeout
    at, gone = round(dice.uniform(10, 16), 3), round(2 * timeout, 3)
    slept = round(timeout * dice.uniform(0.75, 1.2), 3)
    steps: tuple[Step, ...] = (
        Step(at, "fate", "", slept, ("endpoint", "lost", "0", "pause")),
        Step(round(at + 0.1, 3), "unseat", "", 0.0, ("resign",)),
        Step(round(at + 0.5, 3), "fate", "", gone, ("switch to zookeeper", "answered", "0", "isolate")),
    )
    if dice.random() < TOO_LONG:
        over = round(plan.timing.short_ttl * dice.uniform(1.05, 1.3), 3)
        steps = (Step(at, "fate", "", over, ("claim", "fine", "0", "pause")), steps[1])
    return replace(plan, jitter=0.02, steps=steps)


def draw_unruly_clock(seed: int, dice: random.Random) -> Plan:
    """Draw a standby whose clock is much too fast, so that it takes the lease from a leader who still believes."""
    plan = _draw_plan(seed, dice, (0, 1, 3), 0)
    rates = (1.0, FAST, 1.0)[: len(plan.rates)]
    ttl = plan.timing.short_ttl
    steps, back = [Step(2.5, "crash", "b", round(1.5 * ttl, 3))], round(2.6 + 1.5 * ttl, 3)
    if dice.random() < 0.7:  # the lease is seized, and the directory is not
        steps.append(Step(back, "fate", "", round(ttl, 3), ("claim", "dropped", "0", "crash")))
    return replace(plan, rates=rates, unruly=True, steps=tuple(steps))


def draw_record_without_hdfs(seed: int, dice: random.Random) -> Plan:
    """Draw a stranger that writes an old record, or one of another session, while HDFS cannot refute it.

    Readers know better: HDFS has told them before.
    """
    plan = _draw_plan(seed, dice, (0, 1, 2), dice.choice((1, 3)))
    plan = replace(plan, readers=2, audit=4.0, republishes=True)
    at = dice.uniform(20, 24)
    records = ("tamper", ("leader", "older")), ("tamper", ("leader", "former")), ("forge", ("forged session",))
    kind, how = dice.choice(records)
    steps = [Step(9.0, "unseat", "", 4.0, (dice.choice(("resign", "crash")),)), Step(at, "failover", "", 5.0)]
    steps += [Step(round(at + 0.2 * number, 3), kind, "", 0.0, how) for number in range(1, 24)]
    return replace(plan, steps=tuple(steps))


ALL: tuple[Draw, ...] = (draw_forgotten_renewal, draw_lapse, draw_slept, draw_unruly_clock, draw_record_without_hdfs)
