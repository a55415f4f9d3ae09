"""Throw-away job: the job that a program leads in a dry run, whatever job it names."""

import os
from collections.abc import Mapping
from typing import Any

ALONE = {"zookeeper": "", "history": "", "snapshots": "off"}
"""Settings of a throw-away job that differ from the program's: no reader looks for it."""

VARIABLE = "HA_PREFLIGHT"


def settings_here(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with which a program leads: in a dry run the throw-away job's, although code says otherwise.

    So a dry run never contends for the job itself.
    """
    root = os.environ.get(VARIABLE)
    return {**given, **ALONE, "files": root} if root else dict(given)


def output_here(uri: str, name: str) -> str:
    """Return where an output is: in a dry run in the throw-away job, so that nothing is made or completed elsewhere."""
    root = os.environ.get(VARIABLE)
    return f"{root.rstrip('/')}/output/{name}" if root else uri


def is_dry_run() -> bool:
    """Whether this program runs in a dry run."""
    return bool(os.environ.get(VARIABLE))
