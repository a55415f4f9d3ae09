"""The page of a report: index.html, which needs nothing but a browser."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from ha.drill.outcome import DrillOutcome, Key, Report, Status
from ha.history.events import Event
from ha.history.timeline import timeline

FIRST = "hybrid-ha"
"""The HA provider that is shown first, and the only one whose failures count; others follow as they ran."""

VERDICTS: dict[Status, str] = {"failed": "FAILED", "skipped": "NOT RUN", "passed": "passed"}
"""Label of each status, the bad news first and in capitals."""


def render(report: Report, histories: Mapping[Key, Sequence[Event]]) -> str:
    """Return the whole HTML document; ``histories`` has the events of each outcome, by its key."""
    outcomes = arranged(report.outcomes)
    providers = dict.fromkeys(each.provider for each in outcomes)
    return _pages.get_template("page.html.j2").render(
        report=report,
        outcomes=outcomes,
        verdicts=VERDICTS,
        tallies={each: tally(each, outcomes) for each in sorted(providers, key=lambda each: each != FIRST)},
        timelines={key.stem: "\n".join(timeline(events)) for key, events in histories.items()},
    )


def arranged(outcomes: Sequence[DrillOutcome]) -> list[DrillOutcome]:
    """Return outcomes as they are shown: groups and drills as they ran, the providers of one drill together."""
    groups = list(dict.fromkeys(each.group for each in outcomes))
    drills = list(dict.fromkeys(each.drill for each in outcomes))
    return sorted(
        outcomes,
        key=lambda one: (groups.index(one.group), drills.index(one.drill), one.environment, one.provider != FIRST),
    )


def tally(provider: str, outcomes: Sequence[DrillOutcome]) -> str:
    """Return the verdict on a provider in a few words, such as ``1 FAILED, 41 passed``."""
    counts = Counter(each.status for each in outcomes if each.provider == provider)
    return ", ".join(f"{counts[status]} {said}" for status, said in VERDICTS.items() if counts[status])


def why(outcome: DrillOutcome) -> str:
    """Return what failed, or why it was not run; empty if it passed."""
    failed = [f"{check.name}: {check.detail}" for check in outcome.checks if not check.passed]
    return "; ".join(filter(None, [outcome.reason.removeprefix("NOT RUN: "), *failed]))


def figure(outcome: DrillOutcome, name: str) -> str:
    """Return a measure with the unit that its name says, and with its bound; a dash if it was not measured."""
    measures = outcome.measures
    if name not in measures:
        return "\N{EN DASH}"
    if not name.endswith("_seconds"):
        return f"{measures[name]:,.0f}"
    bound = measures.get(f"{name.removesuffix('_seconds')}_bound_seconds")
    return _seconds(measures[name]) + (f" of {_seconds(bound)}" if bound is not None else "")


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:,.2f} s"  # noqa: PLR2004


_pages = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_pages.filters |= {"figure": figure, "stem": lambda outcome: Key.of(outcome).stem, "why": why}
