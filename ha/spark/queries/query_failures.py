"""Failures of queries: an error in one line, a remedy if no restart can mend it, and whether the program may end. Pure.

A query that fails has to be started again, and to end without an error, or the program has to say that this is meant.
"""

import re
import threading
from collections.abc import Collection
from dataclasses import dataclass

from ha.hook.query_rules import HOPELESS as OURS
from ha.hook.query_watch import line_of

_STATE = (
    "its checkpoint was made by another program; run that program again, or give the query another name to start it "
    "from scratch"
)
_SOURCES = (
    "its checkpoint knows another number of sources; run the program with those that it had, or give the query another "
    "name to start it from scratch"
)
_MISSING = "add what is missing to the program's files or packages, and start it again"

HOPELESS = (
    (re.compile(r"\[STATE_STORE_\w*SCHEMA\w*"), _STATE),
    (re.compile(r"\[STATE_STORE_\w*(?:NOT_COMPATIBLE|MISMATCH\w*)\]"), _STATE),
    (re.compile(r"\[STREAMING_STATEFUL_OPERATOR_\w+"), _STATE),
    (re.compile(r"\[STATE_STORE_UNSUPPORTED_OPERATION\w*"), _STATE),
    (re.compile(r"There are \[\d+\] sources in the checkpoint offsets and now there are"), _SOURCES),
    (re.compile(r"\[STREAMING_CHECKPOINT_MISSING_METADATA_FILE"), "restore the checkpoint's metadata file"),
    (re.compile(r"\b(?:ClassNotFoundException|NoClassDefFoundError|NoSuchMethodError)\b"), _MISSING),
    (re.compile(r"\b(?:ModuleNotFoundError|DATA_SOURCE_NOT_FOUND)\b"), _MISSING),
    (OURS, "do what its error says"),
)
"""Errors, wherever they are among the causes, that come again at every restart; and what to do."""


NO_JVM = "[JAVA_GATEWAY_EXITED]"
"""In an error of PySpark: the JVM did not start, and said why before; ours said so in a line of its own."""

_OURS = re.compile(r"^ha: (.+)$", re.MULTILINE)

FORGOTTEN = "Object ID unknown"
"""In an error: Spark calls a function that the program does not have any more. Only a new program mends that."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Failure of a query: its error in one line, and what to do if no restart can mend it; empty if a restart can."""

    query: str
    error: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.query}: {self.error}" + (f" (no restart mends this: {self.remedy})" if self.remedy else "")


def failure(query: str, text: str, remedy: str = "") -> Failure:
    """Read the text of an exception, with its causes, of which the last is kept; the remedy may be known already."""
    return Failure(query, _line(text), remedy or _remedy(text))


def _remedy(text: str) -> str:
    return next((remedy for pattern, remedy in HOPELESS if pattern.search(text)), "")


def _line(text: str) -> str:
    """Return the root cause in one line; an empty text is said to be one."""
    if NO_JVM in text and (refused := list(_OURS.finditer(text))):
        return refused[-1][1]
    return line_of(text) or "it ended with an error that has no text"


class QueryEnds:
    """The runs of queries that a listener hears of. Spark's bus waits for its methods, which return at once."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}
        """By run id, the name of a query that has not ended; for one without a name, its id."""
        self._failed: dict[str, Failure] = {}
        self._any = False
        self._changed = threading.Condition()

    def started(self, run_id: str, query: str) -> None:
        """A query runs: whatever became of its runs before."""
        with self._changed:
            self._any = True
            self._runs[run_id] = query
            self._failed.pop(query, None)

    def ended(self, run_id: str, error: str | None) -> None:
        """A run has ended; ``error`` is its exception with the causes."""
        with self._changed:
            query = self._runs.pop(run_id, None)
            if query is not None and error is not None:
                self._failed[query] = failure(query, error)
            self._changed.notify_all()

    def settle(self, active: Collection[str], seconds: float) -> None:
        """Wait so many seconds at most for the events of runs that are over: each comes after its query's waiter."""
        with self._changed:
            self._changed.wait_for(lambda: self._runs.keys() <= {*active}, seconds)

    @property
    def failed(self) -> Failure | None:
        """A query that has failed and was not started again; None if there is none."""
        with self._changed:
            return next(iter(self._failed.values()), None)

    def unfinished(self, active: Collection[str]) -> str:
        """Return why the program cannot mean this end; empty if it can, or if a query has failed."""
        with self._changed:
            if not self._any:
                return "no query was started"
            runs = [query for run_id, query in self._runs.items() if run_id in active]
            unknown = [query for run_id, query in self._runs.items() if run_id not in active]
        if runs:
            return f"query {runs[0]} was still active"
        return f"it is not known how query {unknown[0]} has ended" if unknown else ""
