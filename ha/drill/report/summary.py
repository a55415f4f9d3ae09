"""Summary of a report: the verdict, one row for each drill, and the HA providers of one drill side by side.

The page and the Markdown tables show the same.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ha.drill.outcome import Outcome, Report, Status
from ha.drill.report.figures import LESS_IS_BETTER, figure, figures, label, ordered, seconds
from ha.drill.report.tables import Key

FIRST = "hybrid-ha"
"""The HA provider that is shown first; others follow as they ran."""

VERDICTS: dict[Status, str] = {"passed": "passed", "failed": "FAILED", "skipped": "NOT RUN"}
"""Label of each status: bad news in capitals."""

NOTHING = "\N{EN DASH}"
"""Stands where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of drills with each status, for one HA provider.

    Attributes:
        provider: what kept the job available.
        passed: drills.
        failed: drills.
        skipped: drills.
    """

    provider: str
    passed: int
    failed: int
    skipped: int

    @property
    def sentence(self) -> str:
        """The verdict in a few words, the bad news first."""
        counted = ((self.failed, "FAILED"), (self.skipped, "NOT RUN"), (self.passed, "passed"))
        said = [f"{number} {what}" for number, what in counted if number]
        return f"all {said[0]}" if said == [f"{self.passed} passed"] and self.passed > 1 else ", ".join(said)


@dataclass(frozen=True, slots=True)
class Row:
    """One outcome in the summary; what was not measured is a dash.

    Attributes:
        outcome: what came of the drill.
        anchor: of its section in the page.
        provider: what its provider is called.
        verdict: its status, as it is shown.
        why: what failed, or why it was not run; empty if it passed.
        leader_changes: how many.
        recovery: from the fault to the next leader.
        bound: what that may be at most.
        share: recovery as a part of its bound, from 0 to 1; None if there is none.
        late: whether it was more than its bound.
        slowest_lookup: the time it took.
        lookups_failed: how many.
        words: counted.
        expected: words that there should be.
        words_wrong: whether they differ, or any was counted wrong.
        took: seconds of the drill.
    """

    outcome: Outcome
    anchor: str
    provider: str
    verdict: str
    why: str
    leader_changes: str
    recovery: str
    bound: str
    share: float | None
    late: bool
    slowest_lookup: str
    lookups_failed: str
    words: str
    expected: str
    words_wrong: bool
    took: str


def arranged(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return outcomes as they are shown: groups and drills as they ran, the providers of one drill together."""
    groups = {name: number for number, name in enumerate(dict.fromkeys(each.group for each in outcomes))}
    drills = {name: number for number, name in enumerate(dict.fromkeys(each.drill for each in outcomes))}
    providers = providers_of(outcomes)
    return sorted(
        outcomes,
        key=lambda each: (groups[each.group], drills[each.drill], each.environment, providers.index(each.provider)),
    )


def providers_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the providers that there are, in the order in which they are shown."""
    found = dict.fromkeys(each.provider for each in outcomes)
    return sorted(found, key=lambda provider: provider != FIRST)


def tallies(report: Report) -> list[Tally]:
    """Count the outcomes of each provider; those of baselines are no verdict on this project."""
    found = []
    for provider in providers_of(report.outcomes):
        counts = Counter(each.status for each in report.outcomes if each.provider == provider)
        found.append(Tally(provider, counts["passed"], counts["failed"], counts["skipped"]))
    return found


def rows(report: Report) -> list[Row]:
    """Return the rows of the summary, in the order in which they are shown."""
    return [_row(outcome) for outcome in arranged(report.outcomes)]


def _row(outcome: Outcome) -> Row:
    measures = outcome.measures
    shown = {each.name: each for each in figures(measures)}
    values = {name: each.value for name, each in shown.items()}
    takeover, bound = measures.get("takeover_seconds"), measures.get("takeover_bound_seconds")
    recovery = shown.get("takeover_seconds")
    expected, counted = measures.get("words_expected"), measures.get("words_counted")
    return Row(
        outcome=outcome,
        anchor=Key.of(outcome).stem,
        provider=outcome.provider,
        verdict=VERDICTS[outcome.status],
        why=_why(outcome),
        leader_changes=values.get("leader_changes", NOTHING),
        recovery=recovery.value if recovery else NOTHING,
        bound=recovery.bound if recovery else "",
        share=None if takeover is None or not bound else max(0.0, min(1.0, takeover / bound)),
        late=recovery is not None and recovery.exceeds,
        slowest_lookup=values.get("slowest_lookup_seconds", NOTHING),
        lookups_failed=values.get("lookups_failed", NOTHING),
        words=values.get("words_counted", NOTHING),
        expected=values.get("words_expected", ""),
        words_wrong=bool(measures.get("words_wrong")) or (None not in {counted, expected} and counted != expected),
        took=seconds(outcome.seconds) if outcome.seconds else NOTHING,
    )


def _why(outcome: Outcome) -> str:
    if outcome.status == "passed":
        return ""
    failed = [
        f"{check.name}: {check.detail}" if check.detail else check.name for check in outcome.checks if not check.passed
    ]
    reason = outcome.reason.removeprefix(f"{VERDICTS[outcome.status]}: ")  # it is said beside
    return "; ".join(filter(None, [reason, *failed])) or "no reason was given"


# --- the comparison


Mark = Literal["best", "worst", "failed", ""]


@dataclass(frozen=True, slots=True)
class Cell:
    """Figure of one provider.

    Attributes:
        text: the figure with its unit.
        mark: ``best``, ``worst`` or ``failed``; empty if the providers do not differ.
    """

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One measure under all providers.

    Attributes:
        label: of the measure.
        cells: one a provider, in the order of the providers.
        matters: whether providers are better or worse by it.
    """

    label: str
    cells: list[Cell]
    matters: bool = True


@dataclass(frozen=True, slots=True)
class Compared:
    """One drill under all providers.

    Attributes:
        drill: its name.
        title: what it does.
        environment: where it ran.
        lines: the verdict, then the measures.
    """

    drill: str
    title: str
    environment: str
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All drills that ran under several providers.

    Attributes:
        providers: what they are called, one a column.
        drills: in the order in which they are shown; empty if nothing can be compared.
    """

    providers: list[str]
    drills: list[Compared]


def compare(report: Report) -> Comparison:
    """Set the providers of each drill side by side; drills that ran under fewer than two are left out."""
    together: dict[tuple[str, str], dict[str, Outcome]] = {}
    for outcome in arranged(report.outcomes):
        together.setdefault((outcome.drill, outcome.environment), {})[outcome.provider] = outcome
    several = [each for each in together.values() if sum(one.status != "skipped" for one in each.values()) > 1]
    providers = providers_of([outcome for each in several for outcome in each.values()])
    return Comparison(providers, [_compared(each, providers) for each in several])


def _compared(outcomes: dict[str, Outcome], providers: Sequence[str]) -> Compared:
    first = next(iter(outcomes.values()))
    columns = [outcomes.get(provider) for provider in providers]
    ran = [each for each in columns if each is not None]
    # Where a leader must be replaced, it is no merit to have replaced none.
    expected = any("takeover_bound_seconds" in each.measures for each in ran)
    lines = [Line("verdict", [_verdict(each) for each in columns])]
    for name in ordered(name for each in ran for name in each.measures):
        matters = name in LESS_IS_BETTER and not (expected and name == "leader_changes")
        lines.append(_line(name, [None if each is None else each.measures.get(name) for each in columns], matters))
    lines.sort(key=lambda line: not line.matters)
    return Compared(first.drill, first.title, first.environment, lines)


def _line(name: str, values: Sequence[float | None], matters: bool) -> Line:
    known = [value for value in values if value is not None and not math.isnan(value)]
    choice = matters and len(set(known)) > 1
    cells = []
    for value in values:
        mark: Mark = ""
        if choice and value is not None:
            mark = "best" if value == min(known) else "worst" if value == max(known) else ""
        cells.append(Cell(NOTHING if value is None else figure(name, value), mark))
    return Line(label(name), cells, matters)


def _verdict(outcome: Outcome | None) -> Cell:
    if outcome is None:
        return Cell(NOTHING)
    failed = sum(not check.passed for check in outcome.checks)
    said = VERDICTS[outcome.status]
    text = f"{said} ({failed} of {len(outcome.checks)} checks)" if failed else said
    return Cell(text, "failed" if outcome.status == "failed" else "")
