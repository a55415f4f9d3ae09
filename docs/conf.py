"""The documentation site: ``make docs`` builds it with Sphinx into ``build/site``, and fails on a broken link."""

from pathlib import Path
from typing import Any

project = "Hybrid HA"
html_title = "Hybrid HA"
extensions = ["myst_parser"]
exclude_patterns = ["README.md"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

highlight_language = "text"
nitpicky = True
myst_heading_anchors = 4
"""Headings down to this level can be linked to, by the names that a forge gives them."""

NAVIGATION = {
    "Start": ["installation", "programs", "examples", "jobs", "outputs", "workers"],
    "Operate": [
        "operations/index",
        "operations/alerts",
        "operations/who-leads",
        "job-states",
        "operations/restarts-and-hangs",
        "operations/kills",
        "operations/standbys",
        "operations/outputs-and-gaps",
        "operations/stopping-and-cleaning",
        "operations/draining-and-moving",
        "operations/upgrades",
        "operations/spark-programs",
        "operations/networks",
        "operations/checks",
        "checkpoints",
        "damaged-checkpoints",
        "even-load",
        "replication",
        "groups",
        "api",
        "deploying",
        "program",
        "security",
        "versions",
        "metrics",
        "drills",
    ],
    "Understand": [
        "protocol",
        "readers",
        "architecture",
        "reliability",
        "evidence/gate",
        "evidence/qualify",
        "benchmarks",
        "Figures <benchmarks/benchmarks>",
    ],
    "Reference": ["reference/commands", "reference/settings", "reference/api"],
    "Decisions": ["decisions/index", "decisions/0*"],
}
"""The pages, by the question that brings a reader here."""


def add_navigation(_app: Any, page: str, source: list[str]) -> None:
    """Append the navigation to the index; its text stays plain Markdown, which a forge shows as well."""
    if page == "index":
        for caption, pages in NAVIGATION.items():
            glob = ":glob:\n" if any("*" in each for each in pages) else ""
            source[0] += "\n".join(
                ["\n```{toctree}", f":caption: {caption}", f":hidden:\n{glob}", *pages, "```\n"],
            )


def setup(app: Any) -> None:
    """Register with Sphinx."""
    app.connect("source-read", add_navigation)
