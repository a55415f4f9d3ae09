"""Report of a run that broke a promise, for people: the seed, the shrunk plan and the timeline."""

from ha.history.timeline import timeline
from tests.system.simulation.plan import Plan
from tests.system.simulation.run import Run, simulate
from tests.system.simulation.shrink import shrink

BEFORE = 40.0
"""Seconds of the timeline before the first violation."""


def breaks(guarantee: str, plan: Plan) -> bool:
    """Whether the plan breaks that guarantee; an impossible plan breaks none."""
    try:
        return any(each.guarantee == guarantee for each in simulate(plan).violations)
    except (KeyError, IndexError):
        return False


def report(run: Run, *, smaller: bool = True) -> str:
    """Describe a run that broke a promise; ``smaller`` first shrinks its plan, which takes some seconds."""
    guarantee = run.violations[0].guarantee
    plan = shrink(run.plan, lambda plan: breaks(guarantee, plan)) if smaller else run.plan
    run = simulate(plan)
    at = run.violations[0].at
    lines = [
        f"Seed {plan.seed} breaks {guarantee}: {run.violations[0].sentence}",
        "",
        "Its plan, made small:",
        f"    {plan!r}",
        "",
        "What happened:",
        *(line for line in timeline(run.history, run.violations) if at - BEFORE <= float(line.split()[0]) <= at + 1),
    ]
    return "\n".join(lines)
