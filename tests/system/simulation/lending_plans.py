"""Directed plans of shared sessions: leaders that borrow, cannot reach HDFS, and lose the holder or its node."""

import random
from dataclasses import replace

from leader.timing import Timing
from tests.system.simulation.plan import TIMINGS, Plan, Step

LOST = ("pause", "isolate", "crash", "expire", "cut", "server-cut", "server-cut", "server-cut", "server-stop")
"""What ends a holder's session, sooner or later. Of a server that is cut off the quorum hears least."""

OVERSLEPT = 0.5
"""Share of the plans in which the leader sleeps as well, and wakes up when its host's session is over."""


def _plan(seed: int, dice: random.Random) -> Plan:
    """Both contenders borrow, from two hosts; standbys cannot ask the leader itself, so its node alone decides."""
    timing = Timing(**TIMINGS[dice.choice((0, 2))])
    tick = timing.session_timeout * dice.choice((0.5, 0.2))
    return Plan(seed, seconds=45.0, timing=timing, servers=3, tick=tick, lenders=("h0", "h1"))


def _without_files(plan: Plan, at: float) -> Step:
    """Cut the leader off from HDFS: it cannot leave the mode in which ZooKeeper attests its lease."""
    return Step(round(at, 3), "cut", "leader", round(2.5 * plan.timing.session_timeout, 3), ("files", "both"))


def draw_lender_lost(seed: int) -> Plan:
    """Draw a leader whose host's session ends while HDFS is out of its reach."""
    dice = random.Random(f"lender lost {seed}")  # noqa: S311  # replayed, not secret
    plan = _plan(seed, dice)
    timeout, at = plan.timing.session_timeout, dice.uniform(20, 24)
    kind = dice.choice(LOST)
    lasts = round(timeout * dice.uniform(1.3, 2.2), 3)
    how: tuple[str, ...] = ()
    if kind == "cut":
        how = ("zookeeper", dice.choice(("there", "both")))
    elif kind.startswith("server"):
        how = (f"{2 * timeout:.3f}",)
    lost = round(at + timeout * dice.uniform(-0.2, 0.2), 3)
    steps = [_without_files(plan, at), Step(lost, kind, "lender", lasts, how)]
    if dice.random() < OVERSLEPT:
        slept = round(timeout * dice.uniform(0.9, 1.6), 3)
        steps.append(Step(round(at + timeout * dice.uniform(-0.5, 0.1), 3), "pause", "leader", slept))
    return replace(plan, steps=tuple(sorted(steps, key=lambda step: step.at)))


def draw_parted(seed: int) -> Plan:
    """Draw a leader that lives, cannot reach HDFS, and is parted from the holder of its host's session."""
    dice = random.Random(f"parted {seed}")  # noqa: S311  # replayed, not secret
    plan = _plan(seed, dice)
    at = dice.uniform(20, 24)
    parted = Step(round(at + plan.timing.session_timeout * dice.uniform(0.01, 0.5), 3), "part", "leader")
    return replace(plan, steps=(_without_files(plan, at), parted))


def draw_node_deleted(seed: int) -> Plan:
    """Draw a leader whose node a stranger deletes, in the session of its host; it can be asked, and cannot reach HDFS.

    Its standby gives it a session timeout. Nothing that confirms the host's session may make its belief longer.
    """
    dice = random.Random(f"node deleted {seed}")  # noqa: S311  # replayed, not secret
    plan = replace(_plan(seed, dice), suspicion=True)
    at = dice.uniform(20, 24)
    deleted = Step(round(at + dice.uniform(0.1, 1.0), 3), "stranger", "leader", 0.0, ("delete",))
    return replace(plan, steps=(_without_files(plan, at), deleted))
