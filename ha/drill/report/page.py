"""The report as one HTML page that needs nothing but a browser: no scripts, no fonts, nothing from elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2

from ha.drill.outcome import Report
from ha.drill.report.comparison import compare
from ha.drill.report.figures import Figure, figures
from ha.drill.report.keys import Key
from ha.drill.report.summary import GUARDS, NOTHING, Row, rows, tallies
from ha.drill.report.text import printable

_LEGEND = (
    ("leads", "believes to lead"),
    ("lapsing", "is gone, its belief still runs"),
    ("runs", "its command runs"),
    ("nobody", "no leader"),
    ("two", "two at once"),
    ("snapshot", "lookup answered by the snapshot"),
    ("zookeeper", "by ZooKeeper"),
    ("hdfs", "by HDFS"),
    ("stale", "last known, marked stale"),
    ("none", "told: no leader"),
    ("unreachable", "lookup failed (stands out)"),
    ("slow", "lookup took long"),
    ("batch", "batch completed"),
    ("again", "completed again"),
    ("fault", "fault"),
)
"""Classes of a picture's elements, and what they mean."""

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
    """What the page says of one outcome."""

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
        guards=GUARDS,
        rows=found,
        guarded=len(counts) > 1,
        sections=sections,
        comparison=compare(report),
        settings={name.replace("_", " "): f"{value:g} s" for name, value in report.settings.items()},
        legend=_LEGEND,
        nothing=NOTHING,
    )
