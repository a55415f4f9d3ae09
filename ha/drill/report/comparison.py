"""The same drills under several guards, side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ha.drill.outcome import Outcome, Report
from ha.drill.report.figures import LESS_IS_BETTER, figure, label, ordered
from ha.drill.report.summary import GUARDS, NOTHING, VERDICTS, arranged, guards_of

Mark = Literal["best", "worst", "failed", ""]


@dataclass(frozen=True, slots=True)
class Cell:
    """What one guard reached.

    Attributes:
        text: the figure with its unit.
        mark: how it stands beside the others, or that it failed; empty if there is nothing to choose.
    """

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One measure under all guards.

    Attributes:
        label: of the measure.
        cells: one a guard, in the order of the guards.
        matters: whether guards are better or worse by it.
    """

    label: str
    cells: list[Cell]
    matters: bool = True


@dataclass(frozen=True, slots=True)
class Compared:
    """One drill under all guards.

    Attributes:
        drill: its name.
        title: what it does.
        ground: where it ran.
        lines: the verdict, then the measures.
    """

    drill: str
    title: str
    ground: str
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All drills that ran under several guards.

    Attributes:
        guards: what they are called, one a column.
        drills: in the order in which they are shown; empty if nothing can be compared.
    """

    guards: list[str]
    drills: list[Compared]


def compare(report: Report) -> Comparison:
    """Set the guards of each drill side by side; drills that ran under fewer than two are left out."""
    together: dict[tuple[str, str], dict[str, Outcome]] = {}
    for outcome in arranged(report.outcomes):
        together.setdefault((outcome.drill, outcome.ground), {})[outcome.guard] = outcome
    several = [each for each in together.values() if sum(one.status != "skipped" for one in each.values()) > 1]
    guards = guards_of([outcome for each in several for outcome in each.values()])
    return Comparison([GUARDS.get(guard, guard) for guard in guards], [_compared(each, guards) for each in several])


def _compared(outcomes: dict[str, Outcome], guards: Sequence[str]) -> Compared:
    first = next(iter(outcomes.values()))
    columns = [outcomes.get(guard) for guard in guards]
    ran = [each for each in columns if each is not None]
    # Where a leader must be replaced, it is no merit to have replaced none.
    expected = any("takeover_bound_seconds" in each.measures for each in ran)
    lines = [Line("verdict", [_verdict(each) for each in columns])]
    for name in ordered(name for each in ran for name in each.measures):
        matters = name in LESS_IS_BETTER and not (expected and name == "leader_changes")
        lines.append(_line(name, [None if each is None else each.measures.get(name) for each in columns], matters))
    lines.sort(key=lambda line: not line.matters)
    return Compared(first.drill, first.title, first.ground, lines)


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
