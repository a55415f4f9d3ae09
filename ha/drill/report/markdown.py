"""The tables of a report as GitHub Markdown, for documents."""

import re
from collections.abc import Iterable, Sequence

from ha.drill.outcome import Report
from ha.drill.report.comparison import Cell, Comparison, compare
from ha.drill.report.summary import GUARDS, Row, rows, tallies
from ha.drill.report.text import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")
_HEAD = (
    "Drill",
    "What it does",
    "Ground",
    "Guard",
    "Verdict",
    "Leader changes",
    "Recovery",
    "Slowest lookup",
    "Lookups failed",
    "Words counted",
    "Took",
)
_GUARD, _FIGURES = 3, 5
"""Columns: that of the guard, and the first one of figures."""


def table(report: Report) -> str:
    """Return the verdict, the summary and, if several guards were compared, the comparison.

    Args:
        report: with any number of outcomes.

    Returns:
        Markdown that ends with a line break and begins without a heading, to be put below one.
    """
    blocks = [_verdict(report)]
    found = rows(report)
    if found:
        blocks.append(_summary(found))
    comparison = compare(report)
    if comparison.drills:
        blocks.append("Of figures, **bold** is the best of a row and *slanted* the worst.")
        blocks.append(_comparison(comparison))
    return "\n\n".join(blocks) + "\n"


def _verdict(report: Report) -> str:
    said = [f"{_text(GUARDS.get(each.guard, each.guard))}: {each.sentence}" for each in tallies(report)]
    return f"Drills of {_text(report.when)}, version {_text(report.version)}. {'; '.join(said) or 'None were run'}."


def _summary(found: Sequence[Row]) -> str:
    guarded = len({row.guard for row in found}) > 1
    lines = []
    for row in found:
        recovery = f"{row.recovery} (at most {row.bound})" if row.bound else row.recovery
        words = f"{row.words} of {row.expected}" if row.expected else row.words
        outcome = row.outcome
        verdict = outcome.status if outcome.status == "passed" else f"**{row.verdict}**: {_text(row.why)}"
        said = [outcome.drill, outcome.title, outcome.ground, row.guard]
        measured = [row.leader_changes, recovery, row.slowest_lookup, row.lookups_failed, words, row.took]
        lines.append([*map(_text, said), verdict, *map(_text, measured)])
    kept = [number for number in range(len(_HEAD)) if guarded or number != _GUARD]
    head = [_HEAD[number] for number in kept]
    ruler = ["---:" if number >= _FIGURES else "---" for number in kept]
    return _rows([head, ruler, *([line[number] for number in kept] for line in lines)])


def _comparison(comparison: Comparison) -> str:
    lines = [["Drill", "Measure", *map(_text, comparison.guards)], ["---", "---", *("---:" for _ in comparison.guards)]]
    for drill in comparison.drills:
        name = _text(f"{drill.drill} ({drill.ground})")
        for line in drill.lines:
            lines.append([name, _text(line.label), *map(_cell, line.cells)])
            name = ""
    return _rows(lines)


def _cell(cell: Cell) -> str:
    around = {"best": "**", "failed": "**", "worst": "*"}.get(cell.mark, "")
    return f"{around}{_text(cell.text)}{around}"


def _rows(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """A text in one line that means only itself."""
    return _SPECIAL.sub(r"\\\1", printable(text)).replace("&", "&amp;")
