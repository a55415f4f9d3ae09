"""Verdict of a test on a drill: a small machine that runs everything at once may be late, but never wrong."""

from ha.drill.outcome import DrillOutcome

SAFETY = {"history keeps every guarantee", "every word counted once"}
TIMED = {"recovered in time": "takeover_seconds", "lookups keep their deadline": "slowest_lookup_seconds"}
MARGIN = 3.0
"""Multiple of its bound that a duration may have in a test; ``ha lab drill`` itself allows only some seconds more."""

LOOKUP_BOUND = 2.0


def wrong(outcome: DrillOutcome) -> list[str]:
    """Return the failures that cannot be excused, one sentence each."""
    broken = [each for each in outcome.checks if not each.passed]
    unexcused = [each for each in broken if not (each.name in TIMED and _excusable(outcome, TIMED[each.name]))]
    return [*filter(None, [outcome.reason]), *(f"{each.name}: {each.detail}" for each in unexcused)]


def unsafe(outcome: DrillOutcome) -> bool:
    """Whether a promise was broken that does not depend on the speed of the machine."""
    return any(check.name in SAFETY and not check.passed for check in outcome.checks)


def _excusable(outcome: DrillOutcome, measure: str) -> bool:
    bound = outcome.measures.get("takeover_bound_seconds", 0.0) if measure == "takeover_seconds" else LOOKUP_BOUND
    return outcome.measures[measure] <= MARGIN * bound
