"""Directed plans of readers: what they take for silence of a store, and what they believe after a sleep."""

import random
from dataclasses import replace

from leader.timing import Timing
from tests.system.simulation.plan import AGENT, TIMINGS, Plan, Step


def draw_agent_wakes(seed: int) -> Plan:
    """Draw an agent that sleeps over a change of the leader and past its session; a reader begins as it wakes up.

    Nobody has told it of the change: its ZooKeeper client does not know yet that the session is over.
    """
    dice = random.Random(f"agent wakes {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[2]), readers=2, agent=True, audit=10.0)
    at, seconds = dice.uniform(12, 20), dice.uniform(28, 34)
    steps = (
        Step(at, "pause", AGENT, seconds),
        Step(at + 0.1, "crash", "leader", 60.0),
        Step(at + seconds - 1, "crash", "r1", 1.0 + dice.uniform(0.0, 0.05)),
    )
    return replace(plan, steps=steps)


def draw_forged_at_the_last_moment(seed: int) -> Plan:
    """Draw a stranger that writes a record while readers wait for the next leader, and takes it away again.

    Nobody leads for a while. Some of the last looks have hardly any time for HDFS, which answers.
    """
    dice = random.Random(f"last moment {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[2]), readers=2, audit=4.0, jitter=0.05)
    at = dice.uniform(10, 20)
    steps = [Step(at, "pause", name, 20.0) for name in plan.contenders]
    for number in range(3):
        forged = at + 5.0 + 4 * number + dice.uniform(0.0, 3.0)
        steps.append(Step(forged, "forge", "", 0.0, (dice.choice(("forged epoch", "forged session")),)))
        steps.append(Step(forged + 0.8, "tamper", "", 0.0, ("leader", "delete")))
    return replace(plan, steps=tuple(steps))


def draw_dead_and_back(seed: int) -> Plan:
    """Draw a leader whose session ends while nobody reaches HDFS, and which then leads again, without ZooKeeper.

    Readers ask HDFS alone, and see first that the leader is dead, long after the last news.
    """
    dice = random.Random(f"dead and back {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, seconds=70.0, readers=2, audit=40.0)
    at, away = dice.uniform(38, 44), timing.session_timeout * dice.uniform(1.2, 2.0)
    steps = []
    for name in plan.contenders:
        steps += [
            Step(at, "cut", name, away, ("files", "both")),
            Step(at, "cut", name, away + 15.0, ("zookeeper", "both")),
        ]
    return replace(plan, steps=tuple(steps))


def draw_hasty_without_hdfs(seed: int) -> Plan:
    """Draw a change of the leader of which a reader hears that cannot reach HDFS; some of its lookups have little time.

    Others wait long for HDFS to confirm the new record.
    """
    dice = random.Random(f"hasty {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[1]), servers=dice.choice((1, 3)), patience=(20.0, dice.uniform(0.6, 2.0)))
    at = dice.uniform(15, 25)
    steps = Step(at, "cut", "r0", 30.0, ("files", "both")), Step(at + 5.0, "unseat", "", 1.0, ("resign",))
    return replace(plan, steps=steps)


def draw_agent_falls_asleep(seed: int) -> Plan:
    """Draw an agent that sees for a while, without ZooKeeper, that nobody leads, and falls asleep as somebody does."""
    dice = random.Random(f"falls asleep {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[2]), seconds=40.0, servers=0, readers=3, agent=True, audit=30.0)
    at, away = dice.uniform(8, 12), 14.0
    steps = [Step(at, "cut", name, away, ("files", "both")) for name in plan.contenders]
    asleep = Step(at + away + dice.uniform(0.3, 2.5), "pause", AGENT, 8.0)
    return replace(plan, steps=(*steps, asleep))


def draw_forged_while_cut_off(seed: int) -> Plan:
    """Draw a stranger that changes the leader's endpoints while a reader reaches no store, whose audit is overdue then.

    The reader's question to HDFS fails just as both stores are back: it believes ZooKeeper, and audits at once.
    """
    dice = random.Random(f"cut off {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[2]), seconds=50.0, servers=1, readers=1, patience=(2.0,), audit=10.0)
    at, away = dice.uniform(12, 20), dice.uniform(8.0, 10.0)
    steps = (
        Step(at, "cut", "leader", 40.0, ("zookeeper", "both")),  # it cannot put its record right
        Step(at + 1, "isolate", "r0", away),
        Step(at + away - dice.uniform(0.5, 2.0), "forge", "", 0.0, ("forged endpoints",)),
    )
    return replace(plan, steps=steps)


def draw_doubted(seed: int) -> Plan:
    """Draw a forgery that a new reader believes while HDFS is away, and an agent that hears of HDFS first.

    A claim that a NameNode forgets has the agent name another epoch for a while.
    """
    plan = Plan(seed, seconds=38.0, timing=Timing(**TIMINGS[1]), readers=2, patience=(2.0,), agent=True, audit=10.0)
    steps = (
        Step(15.373, "stall", "", 6.185),
        Step(16.05, "crash", "r1", 8.089),
        Step(17.412, "fate", "", 19.059, ("claim", "unwritten", "19.059", "crash")),
        Step(20.138, "unseat", "", 15.963, ("resign",)),
        Step(21.367, "failover", "", 5.237),
        Step(21.967, "forge", "", 0.0, ("forged session",)),
    )
    return replace(plan, steps=steps)
