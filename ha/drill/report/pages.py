"""Pages of a report: index.html, which needs nothing but a browser, and the same tables as Markdown for documents."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from ha.drill.outcome import Report
from ha.drill.report.figures import Figure, figures, printable
from ha.drill.report.summary import NOTHING, Cell, Comparison, Row, compare, rows, tallies
from ha.drill.report.tables import Key

_pages = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: printable(value) if type(value) is str else value,
)


@dataclass(frozen=True, slots=True)
class _Section:
    """Content of the page for one outcome."""

    row: Row
    picture: str
    figures: list[Figure]


def render(report: Report, pictures: Mapping[Key, str]) -> str:
    """Write the page.

    Args:
        report: with any number of outcomes.
        pictures: the timelines, as SVG elements; outcomes without one are shown without.

    Returns:
        The whole HTML document.
    """
    found = rows(report)
    sections = [_Section(row, pictures.get(Key.of(row.outcome), ""), figures(row.outcome.measures)) for row in found]
    counts = tallies(report)
    return _pages.get_template("page.html.j2").render(
        report=report,
        tallies=counts,
        rows=found,
        several=len(counts) > 1,
        sections=sections,
        comparison=compare(report),
        settings={name.replace("_", " "): f"{value:g} s" for name, value in report.settings.items()},
        nothing=NOTHING,
    )


# --- Markdown


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")
_HEAD = (
    "Drill",
    "What it does",
    "Environment",
    "HA provider",
    "Verdict",
    "Leader changes",
    "Recovery",
    "Slowest lookup",
    "Lookups failed",
    "Words counted",
    "Took",
)
_PROVIDER, _FIGURES = 3, 5
"""Columns: that of the provider, and the first one of figures."""


def table(report: Report) -> str:
    """Return the verdict, the summary and, if several providers were compared, the comparison.

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
    said = [f"{_text(each.provider)}: {each.sentence}" for each in tallies(report)]
    return f"Drills of {_text(report.when)}, version {_text(report.version)}. {'; '.join(said) or 'None were run'}."


def _summary(found: Sequence[Row]) -> str:
    several = len({row.provider for row in found}) > 1
    lines = []
    for row in found:
        recovery = f"{row.recovery} (at most {row.bound})" if row.bound else row.recovery
        words = f"{row.words} of {row.expected}" if row.expected else row.words
        outcome = row.outcome
        verdict = outcome.status if outcome.status == "passed" else f"**{row.verdict}**: {_text(row.why)}"
        said = [outcome.drill, outcome.title, outcome.environment, row.provider]
        measured = [row.leader_changes, recovery, row.slowest_lookup, row.lookups_failed, words, row.took]
        lines.append([*map(_text, said), verdict, *map(_text, measured)])
    kept = [number for number in range(len(_HEAD)) if several or number != _PROVIDER]
    head = [_HEAD[number] for number in kept]
    ruler = ["---:" if number >= _FIGURES else "---" for number in kept]
    return _rows([head, ruler, *([line[number] for number in kept] for line in lines)])


def _comparison(comparison: Comparison) -> str:
    lines = [
        ["Drill", "Measure", *map(_text, comparison.providers)],
        ["---", "---", *("---:" for _ in comparison.providers)],
    ]
    for drill in comparison.drills:
        name = _text(f"{drill.drill} ({drill.environment})")
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
