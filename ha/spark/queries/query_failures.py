"""Failures of queries: an error in one line, and a remedy if no restart can mend it. Pure."""

import re
from dataclasses import dataclass

from ha.hook.query_rules import HOPELESS as OURS

LONGEST_LINE = 400  # characters of an error that are kept

_STATE = (
    "its checkpoint was made by another program; run that program again, or give the query another name to start it "
    "from scratch"
)
_SOURCES = (
    "its checkpoint knows another number of sources; run the program with those that it had, or give the query another "
    "name to start it from scratch"
)
_MISSING = "add what is missing to the program's files or packages, and start it again"

_TRACEBACK = "Traceback (most recent call last):\n"

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
    # An error of Python is the last thing that its traceback says. For the JVM that is text, in the middle of its own.
    python = re.findall(r"^\S.*$", text.rpartition(_TRACEBACK)[2], re.MULTILINE) if _TRACEBACK in text else []
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    lines = [line.strip() for line in (python[:1] or causes[-1:] or text.splitlines()) if line.strip()]
    line = " ".join(re.split(r"\s+", lines[0])) if lines else "it ended with an error that has no text"
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."
