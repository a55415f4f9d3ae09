"""Query rules: whether the next leader goes on with a query, by its name and checkpoint; and notes of those it cannot.

A query is guarded if its checkpoint is below the leader directory, in a folder of the query's name: there the next
leader finds it, and a fenced driver cannot commit. It is exactly once if its sink also knows a batch that comes again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

UNGUARDED, REPEATED = "not guarded", "not exactly once"
"""How the sentence begins that is told of a query: no takeover goes on with it, or one does a batch of it again."""
EXACT = "exactly once after all: it writes with an output of ha."

FILE = ".unguarded"  # at the end of the name of the file for `note`, after that of the report of a run
MOST = 1_000  # lines of it that are read
HOPELESS = re.compile(r"\b(?:InvalidSettings|InvalidName|ForeignBatch)\b")
"""Errors of this package that come again at each start of the same program."""

_QUERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
NAMELESS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Name that Spark gives to the checkpoint of a query without a name, new at each start."""


def fault(query: str) -> str:
    """Return what is wrong with the name of a query; empty if its checkpoint can be kept under that name."""
    if _QUERY.fullmatch(query) and not NAMELESS.fullmatch(query):
        return ""
    return (
        f"{query!r} cannot be the name of a query with a checkpoint here: use 1 to 128 letters, digits, dots, "
        "underscores and hyphens, starting with a letter or a digit, and no UUID."
    )


left_out: set[str] = set()
"""Names of checkpoints that :func:`named` has left out in this process: a command that did so has not done all."""


def named(checkpoints: Iterable[str]) -> list[str]:
    """Return the names of queries among those of checkpoints, sorted. Those that Spark makes up are of no query."""
    known = sorted(checkpoints)
    left_out.update(name for name in known if fault(name) and not NAMELESS.fullmatch(name))
    return [name for name in known if not fault(name)]


def unguarded(name: str, location: str, checkpoints: str) -> str:
    """Return why a query would not resume where it was after its driver's end; empty if it would."""
    # name: of the query; empty without.
    # location: of its checkpoint; empty if that is for Spark to choose.
    # checkpoints: where the leader keeps those of its queries.
    if location:
        folder, _, name = path_of(location).rpartition("/")
        if folder != path_of(checkpoints):
            return (
                f"its checkpoint {location} is not in {checkpoints}, so no takeover fences it or goes on with it: "
                "leave checkpointLocation out and set queryName, under `ha run --spark` or in ha.spark.lead."
            )
    if not name or NAMELESS.fullmatch(name):
        return "it has no name, so it begins anew at each start: set queryName."
    return fault(name)


def note(file: Path, query: str, why: str) -> None:
    """Add a report on a query to the file of its program's run; skip it if the file cannot be written."""
    with suppress(OSError), file.open("a") as lines:
        lines.write(json.dumps([query, why]) + "\n")


def noted(file: Path) -> dict[str, str]:
    """Return the last report on each query in such a file; nothing without a file."""
    try:
        found = dict(json.loads(line) for line in file.read_text().splitlines()[:MOST])
        return {query: why for query, why in found.items() if why}
    except (OSError, ValueError):
        return {}


def called(name: str) -> str:
    """Return how a sentence about a query begins, by its name, or by its id if it has none."""
    return f"The query {name!r}" if name and not NAMELESS.fullmatch(name) else "A query without a name"


def path_of(uri: str) -> str:
    """Return the path of a URI, without a slash at its end."""
    return urlsplit(uri)._replace(scheme="", netloc="").geturl().rstrip("/")
