"""Directed plans of escalation: commands that keep failing, while their leaders are lost at each step of the count."""

import random
from dataclasses import replace

from ha.config.restart_strategy import INFINITE
from tests.system.simulation.directed import draw_back, without_deleted_nodes
from tests.system.simulation.drawing import draw_by_chance
from tests.system.simulation.plan import UNSEAT, Plan, Step

KEPT = 0.3
"""Share of a plan's other steps that stay."""

PLACES = ("/graph/attempts=", "/graph/attempts=", "/graph/attempts=", "/status=FAIL", "/status=R")
"""What leaders rename when they count, give up, or start the command."""

MOMENTS = (*PLACES, "/status=RECONCILING", "/checkpoints/")
"""What leaders rename when a command that another sidecar takes up has failed, runs on, or has completed a batch."""

ANY_TIME = 0.6
"""Share of the sidecars that are killed at some time, or while they renew their lease."""

LONG = 0.06
"""Share of the plans in which the job has failed often before, and pauses are as long as they get."""


def draw_escalated(seed: int) -> Plan:
    """Draw commands that fail again and again, and faults where their leaders count, wait, and give up."""
    dice = random.Random(f"escalated {seed}")  # noqa: S311  # replayed, not secret
    drawn = draw_by_chance(seed)
    plan = _draw(dice, drawn)
    if dice.random() < LONG:
        return _draw_long(plan, dice)
    plan = replace(plan, seconds=dice.uniform(40, 60))
    timing, steps = plan.timing, list[Step]()
    for _ in range(dice.randint(1, 5)):
        at = round(dice.uniform(3, plan.seconds), 3)
        lasts = round(timing.call_timeout * dice.uniform(1.0, 4.0), 3)
        match dice.choice(("count", "count", "count", "grant", "unseat")):
            case "count":
                fate = ("strike", *_draw_fate(dice))
                steps.append(Step(at, fate[0], "", lasts, (dice.choice(PLACES), *fate[1:])))
            case "grant":
                gone = ("claim", "answered", "0", f"cut files {dice.choice(('there', 'back', 'both'))}")
                steps.append(Step(at, "fate", "", lasts, gone))
            case _:
                gone_for = round(timing.short_ttl * dice.uniform(0.5, 2.0), 3)
                steps.append(Step(at, "unseat", "", gone_for, (dice.choice(UNSEAT),)))
    kept = [step for step in drawn.steps if step.target[:1] != "r" and dice.random() < KEPT]
    return replace(plan, steps=tuple(sorted((*kept, *steps), key=lambda step: step.at)))


def draw_escalated_back(seed: int) -> Plan:
    """Draw sidecars that are killed while their commands run, fail and are counted, and others that take these up."""
    dice = random.Random(f"escalated back {seed}")  # noqa: S311  # replayed, not secret
    drawn = draw_by_chance(seed)
    within = drawn.timing.short_ttl * dice.uniform(0.3, 1.5)
    plan = replace(_draw(dice, drawn), hosts_die=False, adopt_within=within, seconds=dice.uniform(40, 60))
    steps = list[Step]()
    for _ in range(dice.randint(1, 4)):
        if dice.random() < ANY_TIME:
            steps += draw_back(dice, plan, within)
        else:
            back = round(within * dice.uniform(0.02, 1.2), 3)
            steps.append(
                Step(round(dice.uniform(3, plan.seconds), 3), "strike", "", back, (dice.choice(MOMENTS), "back"))
            )
    kept = [each for each in without_deleted_nodes(drawn) if each.target[:1] != "r" and dice.random() < KEPT]
    return replace(plan, steps=tuple(sorted((*kept, *steps), key=lambda step: step.at)))


def draw_often_failed(seed: int) -> Plan:
    """Draw a job that has failed often before, as :func:`draw_escalated` does now and then."""
    dice = random.Random(f"often failed {seed}")  # noqa: S311  # replayed, not secret
    return _draw_long(_draw(dice, draw_by_chance(seed)), dice)


def _draw(dice: random.Random, drawn: Plan) -> Plan:
    return replace(
        drawn,
        readers=0,
        agent=False,
        calm=False,
        jobs=1,
        stubborn=False,
        hangs=False,
        attempts=dice.choice((2, 3, 4, 5, INFINITE, INFINITE)),
        progress=dice.choice((0.0, 0.0, 0.15, 0.5)),
    )


def _draw_fate(dice: random.Random) -> tuple[str, ...]:
    match dice.choice(("crash", "crash", "pause", "isolate", "journal", "journal", "cut")):
        case "journal":
            return "journal", dice.choice(("0", "0", "0.5", "all"))
        case "cut":
            return "cut", "files", dice.choice(("there", "back", "both"))
        case kind:
            return (kind,)


def _draw_long(plan: Plan, dice: random.Random) -> Plan:
    """Draw a job that has failed often before; its leader is lost while it waits, or once its command has run long."""
    at = dice.choice((60.0, 150.0, 400.0, 720.0))
    lost = Step(at, "unseat", "", 20.0, (dice.choice(("crash", "resign")),))
    before = Step(3.0, "failed-before", "", 0.0, (str(dice.randint(8, 14)),))
    known = Step(3.05, "unseat", "", 20.0, ("resign",))  # the next leader reads it
    seconds = max(dice.uniform(320, 760), at + 30)
    return replace(plan, attempts=INFINITE, progress=0.0, seconds=seconds, steps=(before, known, lost))
