"""What a person is shown of a run that broke a promise: the seed, the plan made small, and what happened in it."""

from ha.history.timeline import timeline
from tests.simulation.plan import Plan
from tests.simulation.run import Run, simulate
from tests.simulation.shrink import shrink

BEFORE = 40.0
"""Seconds of the timeline before the first violation."""


def breaks(guarantee: str, plan: Plan) -> bool:
    """Whether the plan breaks that guarantee; one that cannot be carried out breaks none."""
    try:
        return any(each.guarantee == guarantee for each in simulate(plan).violations)
    except (KeyError, IndexError):
        return False


def report(run: Run, *, smaller: bool = True) -> str:
    """Describe a run that broke something; ``smaller`` makes its plan smaller first, which takes some seconds."""
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
