"""Query watch: tells of a query that has failed while its program goes on without it.

A program may wait for another query, or sleep in a loop: nobody would hear of the failure, and the query stands still.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from .guarding import was_stopped
from .query_rules import called

PAUSE_S = 5.0
"""Between two looks. Who starts a query again does so before the second one that finds it failed."""
MOST = 8_000  # characters of an error that are kept
LONGEST_LINE = 400  # characters of its root cause
_TRACEBACK = "Traceback (most recent call last):\n"
KIND = "QueryFailed"
FAILED = ".failed"
"""Ends the name of the file, after that of the report of a run, with the errors of the queries that stand failed."""


class QueryWatch:
    """The queries of one program."""

    def __init__(self, report: str, queries: Mapping[str, Any], quiet: Callable[[], bool]) -> None:
        """Begin nothing; the files of the report are those of ``docs/program.md``."""
        # queries: by their names; another one of a name takes its place.
        # quiet: whether the program tells of its queries itself.
        self._report, self._queries, self._quiet = report, queries, quiet
        self._suspects: dict[str, Any] = {}  # those that had failed at the last look
        self._failed: dict[str, Any] = {}  # those that were told
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Look from now on; each start of a query says so."""
        with suppress(RuntimeError):  # the host has no thread: the next start tries again
            if self._thread is None and not self._quiet():
                thread = threading.Thread(target=self._run, name="ha-queries", daemon=True)
                thread.start()
                self._thread = thread

    def look(self) -> None:
        """Tell of each query that has failed before the last look, and was not started again."""
        failed = {name: query for name, query in list(self._queries.items()) if _error(query)}
        again = {name: query for name, query in failed.items() if self._suspects.get(name) is query}
        for name, query in again.items():
            if self._failed.get(name) is not query:
                self._tell(name, _error(query))
        self._suspects = failed
        if again != self._failed:
            self._failed = again
            _write(f"{self._report}{FAILED}", {name: _error(query) for name, query in again.items()})

    def _run(self) -> None:
        while not self._quiet():
            self.look()
            time.sleep(PAUSE_S)

    def _tell(self, name: str, error: str) -> None:
        cause = line_of(error)
        sys.stderr.write(f"WARNING: {called(name)} has failed, and its program goes on without it: {cause}\n")
        note = {"kind": KIND, "message": cause, "query": name, "trace": error}
        _write(f"{self._report}.failure-{uuid.uuid4().hex}", note)


def _error(query: Any) -> str:
    """Return the error of a query that has failed; empty if it has not, or if that is not known."""
    try:
        if query.isActive or (error := query.exception()) is None:
            return ""
        if was_stopped(query):
            return ""
        return str(error)[:MOST] or "its error has no text"
    except Exception:  # noqa: BLE001  # py4j's: the JVM ends
        return ""


def line_of(error: str) -> str:
    """Return the root cause of an error of Spark's in one line; empty if it has no text."""
    # An error of Python is the last thing that its traceback says. For the JVM that is text, in the middle of its own.
    python = re.findall(r"^\S.*$", error.rpartition(_TRACEBACK)[2], re.MULTILINE) if _TRACEBACK in error else []
    causes = re.findall(r"^Caused by: (.+)$", error, re.MULTILINE)
    lines = [line.strip() for line in (python[:1] or causes[-1:] or error.splitlines()) if line.strip()]
    line = " ".join(lines[0].split()) if lines else ""
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."


def _write(path: str, said: object) -> None:
    """Replace a file as a whole; skip it if it cannot be written."""
    with suppress(OSError):
        with open(f"{path}.staged", "w", encoding="utf-8") as new:  # noqa: PTH123  # shorter than the import
            json.dump(said, new)
        os.replace(f"{path}.staged", path)  # noqa: PTH105
