"""Directed plans, each drawn for one promise: what chance alone would seldom bring together."""

import random
from dataclasses import replace

from leader.layout.lease import LOOK
from leader.lookup.watch import SLEPT_S
from leader.timing import NEVER, Timing
from tests.system.simulation.drawing import draw_by_chance
from tests.system.simulation.plan import AGENT, TIMINGS, UNSEAT, Plan, Step
from tests.system.simulation.requests import OPERATOR

BACK_AIMS = ("renewal", "renewal", "switch to hdfs", "switch to zookeeper", "endpoint", "change", "release")
BACK_FATES = ("late", "late", "late", "lost", "dropped", "fine", "unwritten")
DOOMED = 0.5
"""Share of the sidecars that come back whose first change of the lease has such a fate."""

ENDLESS = 0.5
"""Share of the plans without suspicion in which guards wait for ever."""

KEPT_BESIDE_BACK = 0.3
"""Share of a plan's other steps that stay where sidecars come back: few others move the leader meanwhile."""

KEPT_BESIDE_ASKED = 0.4
"""Share of a plan's other steps that stay where an operator makes requests."""


def draw_new_reader_without_hdfs(seed: int) -> Plan:
    """Draw a reader that begins while HDFS is away, for less time than a leader can bear, and ZooKeeper is not."""
    dice = random.Random(f"new reader {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, servers=dice.choice((1, 3)))
    at = dice.uniform(15, 25)
    steps = Step(at, "failover", "", timing.long_ttl / 3), Step(at, "crash", "r0", dice.uniform(0.05, 1.0))
    return replace(plan, steps=steps)


def draw_frozen_question(seed: int) -> Plan:
    """Draw an agent that is frozen, often while it asks ZooKeeper, and wakes up under another leader.

    A reader begins at that moment: the others know of that leader.
    """
    dice = random.Random(f"frozen question {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, readers=2, agent=True, audit=4.0)
    at, seconds = dice.uniform(12, 20), plan.audit + 5 * timing.session_timeout
    steps = (
        Step(at - 5, "slow", AGENT, seconds + 10, ("zookeeper", "both")),
        Step(at - dice.uniform(0.1, 0.6), "drop", AGENT, 0.05),  # it asks anew, because its watch is gone
        Step(at, "pause", AGENT, seconds),
        Step(at, "crash", "leader", 60.0),
        Step(at + seconds - 1, "crash", "r1", 1.0 + dice.uniform(0.0, plan.fresh / 2)),
    )
    return replace(plan, steps=steps)


def draw_agent_without_news(seed: int) -> Plan:
    """Draw an agent that pauses briefly over a change of the leader, and waits in vain for ZooKeeper to report it.

    Meanwhile its snapshot runs out, and the other reader asks the stores. Then the agent writes the former leader anew.
    """
    dice = random.Random(f"agent without news {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[1])
    plan = Plan(seed, timing=timing, readers=2, agent=True, audit=4.0)
    at = dice.uniform(12, 25)
    steps = (
        Step(at - 1.5, "crash", AGENT, 0.2),  # the next one asks all stores, and relies on its watch from then on
        Step(at, "cut", AGENT, timing.session_timeout / 2, ("zookeeper", "both")),  # its client notices later
        Step(at + 0.1, "pause", AGENT, 0.95 * SLEPT_S),  # not long enough to be taken for a sleep
        Step(at + 0.1, "unseat", "", 60.0, ("resign",)),
    )
    return replace(plan, steps=steps)


def draw_forgotten_batches(seed: int) -> Plan:
    """Draw a leader whose batches are listed and then forgotten, because the NameNode loses its journal repeatedly.

    Each loss lasts until the driver's call has been given up, and it has looked whether its batch is there.
    """
    dice = random.Random(f"forgotten batches {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, servers=dice.choice((1, 3)))
    times = [at + dice.uniform(0.0, 2.0) for at in range(8, 50, 4)]
    lasts = [timing.call_timeout * dice.uniform(1.0, 3.0) for _ in times]
    steps = [Step(round(at, 3), "journal", "", round(last, 3), ("0",)) for at, last in zip(times, lasts, strict=True)]
    return replace(plan, steps=tuple(steps))


def draw_lost_switch(seed: int) -> Plan:
    """Draw a leader whose switch to a short lease is executed, and which is then cut off before it is told.

    The session that attested its long lease may live for longer than the short one, which is what others go by.
    """
    dice = random.Random(f"lost switch {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[1])
    plan = Plan(seed, timing=timing, servers=1)
    at = dice.uniform(15, 30)
    steps = (
        Step(at, "fate", "", 2 * timing.session_timeout, ("switch to hdfs", "lost", "0", "isolate")),
        Step(at + 0.5, "drop", "leader", dice.uniform(1.0, 2.0)),
    )
    return replace(plan, steps=steps)


def draw_forged_names(seed: int) -> Plan:
    """Draw a stranger that may write in the job's directory, and makes names that no leader ever reaches there.

    Then the leader is lost, and another one has to come.
    """
    dice = random.Random(f"forged names {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[2]), servers=dice.choice((0, 1)), end="crash")
    at = dice.uniform(12, 20)
    steps = (
        Step(at, "stranger", "", 0.0, (dice.choice(("lease", "directory")),)),
        Step(at + dice.uniform(0.0, 5.0), "unseat", "", 20.0, (dice.choice(UNSEAT),)),
    )
    return replace(plan, steps=steps)


def draw_barred(seed: int) -> Plan:
    """Draw a contender that an operator bars, and a leader that goes meanwhile, or once the bar is over."""
    dice = random.Random(f"barred {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    rates = tuple(dice.choice((1 - timing.drift, 1 + timing.drift)) for _ in range(dice.choice((2, 3))))
    plan = Plan(
        seed, timing=timing, rates=rates, servers=dice.choice((0, 1)), suspicion=dice.random() < 0.5, end="crash"
    )
    at, seconds = dice.uniform(8, 12), dice.uniform(20, 40)
    goes = at + dice.uniform(1.0, seconds / 2)
    steps = (
        Step(at, "bar", dice.choice(plan.contenders), seconds),
        Step(goes, "unseat", "", dice.uniform(5, 20), (dice.choice(UNSEAT),)),
    )
    return replace(plan, steps=steps)


def draw_asked_while_dead(seed: int) -> Plan:
    """Draw a leader that dies where HDFS alone carries its lease; an operator asks it again and again meanwhile.

    While it lives it is asked, too, and renews its lease in between.
    """
    dice = random.Random(f"asked while dead {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[dice.randrange(len(TIMINGS))])
    rates = tuple(dice.choice((1 - timing.drift, 1 + timing.drift)) for _ in range(2))
    plan = Plan(seed, timing=timing, rates=rates, servers=0, seconds=30.0, stubborn=True, end="crash and asked")
    times = [at + dice.uniform(0.0, 1.0) for at in range(6, 28)]
    asked = [Step(round(at, 3), "request", "", 0.0, (LOOK,)) for at in times]
    frozen = Step(round(dice.uniform(8, 14), 3), "pause", "leader", round(timing.short_ttl * dice.uniform(0.5, 1.5), 3))
    return replace(plan, steps=tuple(sorted((*asked, frozen), key=lambda step: step.at)))


def draw_asked(seed: int) -> Plan:
    """Draw requests by name, many of them while the leader goes, or while their acceptance is in doubt."""
    dice = random.Random(f"asked {seed}")  # noqa: S311
    drawn = draw_by_chance(seed)
    plan = replace(drawn, operated=True, readers=0, agent=False, calm=False, jobs=1)
    timing, steps = plan.timing, list[Step]()
    for number in range(dice.randint(3, 8)):
        at, around = dice.uniform(4, plan.seconds), dice.uniform(-0.5, 1.5)
        around = min(around, plan.seconds - at)  # what begins after the healing is not healed
        steps.append(Step(round(at, 3), "ask", f"r{number}"))
        lasts = round(timing.call_timeout * dice.uniform(1.0, 4.0), 3)
        match dice.choice(("nothing", "unseat", "unseat", "doubt", "doubt", "cut")):
            case "unseat":
                seconds = round(timing.short_ttl * dice.uniform(0.5, 2.0), 3)
                steps.append(Step(round(at + around, 3), "unseat", "", seconds, (dice.choice(UNSEAT),)))
            case "doubt":
                share = dice.choice(("0", "0", "0.5", "all"))
                steps.append(Step(round(at, 3), "doubt", "", lasts, (share,)))
            case "cut":
                how = ("files", dice.choice(("there", "back", "both")))
                steps.append(Step(round(at + around, 3), "cut", dice.choice(("leader", OPERATOR)), lasts, how))
            case _:
                pass
    others = [] if drawn.calm else without_deleted_nodes(drawn)
    kept = [step for step in others if step.target[:1] != "r" and dice.random() < KEPT_BESIDE_ASKED]
    return replace(plan, steps=tuple(sorted((*kept, *steps), key=lambda step: step.at)))


def draw_sidecar_back(seed: int) -> Plan:
    """Draw sidecars that are killed while their commands run on, at each step, and others that take these up."""
    dice = random.Random(f"sidecar back {seed}")  # noqa: S311
    drawn = draw_by_chance(seed)
    within = drawn.timing.short_ttl * dice.uniform(0.3, 1.5)
    endless = not drawn.suspicion and dice.random() < ENDLESS
    plan = replace(drawn, calm=False, jobs=1, hosts_die=False, stubborn=drawn.stubborn or endless)
    plan = replace(plan, adopt_within=NEVER if endless else within)
    steps = [step for _ in range(dice.randint(1, 4)) for step in draw_back(dice, plan, within)]
    kept = [step for step in without_deleted_nodes(drawn) if dice.random() < KEPT_BESIDE_BACK]
    return replace(plan, steps=tuple(sorted((*kept, *steps), key=lambda step: step.at)))


def draw_back_to_a_forgotten_name(seed: int) -> Plan:
    """Draw a leader that dies after a renewal that is shown and then forgotten; a new process takes the lease up.

    Standbys have seen the name of that renewal, and count from then. The new process is cut off after its first rename.
    """
    dice = random.Random(f"forgotten name {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[dice.choice((0, 1, 3))])
    plan = Plan(seed, timing=timing, servers=0, seconds=40.0, adopt_within=timing.short_ttl)
    at, shown = dice.uniform(12, 20), timing.short_ttl * dice.uniform(0.08, 0.14)
    back = round(shown + timing.short_ttl * dice.uniform(0.02, 0.08), 3)
    then = f"back answered 0 isolate {2 * timing.short_ttl:.3f}"
    step = Step(round(at, 3), "fate", "", back, ("renewal", "unwritten", f"{shown:.3f}", then))
    return replace(plan, steps=(step,))


def draw_back_after_a_release(seed: int) -> Plan:
    """Draw a leader that dies after it has given its lease back; a new process thinks that it is still held.

    Standbys have nothing that tells them of the release.
    """
    dice = random.Random(f"back after a release {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[dice.choice((0, 1, 3))])
    plan = Plan(seed, timing=timing, servers=0, seconds=40.0, stubborn=True, adopt_within=NEVER)
    at, seconds = round(dice.uniform(12, 20), 3), round(timing.retry * dice.uniform(0.05, 1.0), 3)
    fate = Step(at, "fate", "", seconds, ("release", "fine", "0", "back"))
    return replace(plan, steps=(fate, Step(at + 0.1, "unseat", "", 0.0, ("resign",))))


def draw_forgotten_release(seed: int) -> Plan:
    """Draw a leader that gives its lease back for another contender; that is shown, forgotten, and done again.

    The other one sleeps, and a third one has seen the first release: the turn begins with the second.
    """
    dice = random.Random(f"forgotten release {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, rates=(1.0, 1.0, 1.0), servers=dice.choice((0, 1)), readers=0, seconds=40.0)
    at, shown = dice.uniform(10, 16), timing.hand_over * dice.uniform(0.1, 0.9)
    steps = (
        Step(at - 1.0, "pause", "c", 20.0),
        Step(at - 0.5, "fate", "", 0.0, ("release", "unwritten", f"{shown:.3f}", "nothing")),
        Step(at, "request", "", 0.0, ("c",)),
    )
    return replace(plan, steps=steps)


def draw_back_and_gone(seed: int) -> Plan:
    """Draw a sidecar that comes back and dies as well, while its rename of the lease is under way.

    The command goes on for as long as the first one believed, which ZooKeeper had attested.
    """
    dice = random.Random(f"back and gone {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[1]), suspicion=True, readers=0, seconds=40.0, adopt_within=8.0)
    how = ("late", f"{dice.uniform(0.01, 0.99):.3f}", "back", "12.0")
    step = Step(round(dice.uniform(18, 24), 3), "back", "leader", round(dice.uniform(0.05, 1.2), 3), how)
    return replace(plan, steps=(step,))


def without_deleted_nodes(plan: Plan) -> list[Step]:
    """A dead sidecar cannot be asked, and so its session's node must not be deleted: one of the assumptions of S1."""
    return [step for step in plan.steps if step.kind != "stranger" or step.how[0] not in ("delete", "replace")]


def draw_back(dice: random.Random, plan: Plan, within: float) -> list[Step]:
    """Draw a sidecar that dies, often while a command of it is under way, and one that comes back in time or late."""
    timing, at = plan.timing, round(dice.uniform(3, plan.seconds), 3)
    seconds = round(within * dice.uniform(0.02, 1.2), 3)
    late = f"{timing.short_ttl * dice.uniform(0.02, 1.5):.3f}"
    then = ""
    if dice.random() < DOOMED:
        what = dice.choice(("nothing", "back", "back", "pause", "isolate", "isolate"))
        then = f" {dice.choice(BACK_FATES)} {late} {what} {within * dice.uniform(0.1, 3):.3f}"
    match dice.choice(("any time", "any time", "a command", "a command", "a command", "a second one")):
        case "any time":
            return [Step(at, "back", "leader", seconds, tuple(then.split()))]
        case "a second one":
            first = Step(at, dice.choice(("freeze", "pause", "rush", "back")), "leader", seconds)
            return [first, Step(at + seconds / 2, "rush", "leader")]
        case _:
            aim = dice.choice(BACK_AIMS)
            cause = Step(round(at + 0.1, 3), "drop", "leader", round(dice.uniform(0.1, 2.0), 3))
            if aim == "release":
                cause = Step(round(at + 0.1, 3), "unseat", "", 0.0, ("resign",))
                seconds = round(timing.retry * dice.uniform(0.02, 0.5), 3)
            causes = [cause] if plan.servers or aim == "release" else []
            return [Step(at, "fate", "", seconds, (aim, dice.choice(BACK_FATES), late, f"back{then}")), *causes]
