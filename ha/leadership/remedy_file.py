"""Remedy file: in it a program tells its sidecar that no restart mends its failure, and what does.

It lies beside the program's report on its queries, one for each run, whatever exit code the program ends with.
"""

import os
from contextlib import suppress
from pathlib import Path

LONGEST = 1000
"""Characters of a remedy that are read."""


def write(remedy: str) -> None:
    """Tell the sidecar, if the program runs under one; what goes wrong is the restart that would come anyway."""
    if path := os.environ.get("HA_QUERIES"):
        with suppress(OSError):
            _beside(Path(path)).write_text(remedy, encoding="utf-8")


def read(report: Path) -> str:
    """Return what a run has said, given the path of its report; empty if it has said nothing."""
    try:
        return _beside(report).read_text(encoding="utf-8")[:LONGEST]
    except (OSError, UnicodeDecodeError):
        return ""


def _beside(report: Path) -> Path:
    return report.with_name(f"{report.name}.remedy")
