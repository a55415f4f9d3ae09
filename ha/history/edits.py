"""Edits: the changes that HDFS has executed, read from the NameNode's edit log as ``hdfs oev -p xml`` prints it.

The audit log would not do. A NameNode writes it after it has released its lock, so under load every third line is out
of order, and it allows a ``mkdirs`` that changed nothing. The edit log is numbered under the lock, without refusals.
"""

import io
import re
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from ha.history.events import Stored, encode
from store.clock import now

FILE = "hdfs.jsonl"

TOLERANCE = 0.1
"""Seconds by which these times may differ from the processes': they come from the wall clock, in milliseconds."""

_OPERATIONS = {
    "OP_RENAME": ("rename", "SRC"),
    "OP_RENAME_OLD": ("rename", "SRC"),
    "OP_MKDIR": ("make", "PATH"),
    "OP_ADD": ("make", "PATH"),  # a file; writing into it changes no name
    "OP_DELETE": ("delete", "PATH"),
}
_MANGLED = re.compile(r"\\([0-9a-f]{4,});")


def save(segments: Iterable[str], files: str, job: str, folder: Path) -> None:
    """Add the changes that HDFS has executed on the names of a job to the history in a folder; see :func:`stored`."""
    (folder / FILE).write_bytes(b"".join(encode(event) for event in stored(segments, files) if event.job == job))


def stored(segments: Iterable[str], files: str) -> list[Stored]:
    """Return every change of names of jobs below the URI ``files``, in the order in which HDFS executed them."""
    # Paths are relative to the job's directory, which itself is `.`. To a job, an entry that is renamed into its
    # directory was made, and one that is renamed out of it was deleted. Times are the NameNode's, converted to this
    # host's boot clock: in order and good enough to show, but see `TOLERANCE`.
    # The segments, one XML document each, may come in any order. `ValueError`: one is none, or one is missing.
    records = dict(record for segment in segments for record in _records(segment))
    numbers = sorted(records)
    for before, after in pairwise(numbers):
        if after != before + 1:
            raise ValueError(f"The edit log has no transactions {before + 1} to {after - 1}: give all of its segments.")
    root = urlsplit(files).path.rstrip("/")
    offset = now() - time.time()
    latest: dict[str, float] = {}
    """Of each job, since the NameNode's clock may be set back; one job's times do not push another's forward."""
    events = []
    for number in numbers:
        if (change := records[number]) is None:
            continue
        at, operation, *paths = change
        jobs, below = zip(*(_place(path, root) for path in paths), strict=True)
        if len(set(jobs)) == 1:
            found = [(jobs[0], operation, *below)]
        else:
            found = list(zip(jobs, ("delete", "make"), below, strict=True))
        for job, *what in found:
            if job:
                latest[job] = max(latest.get(job, float("-inf")), at / 1000 + offset)
                events.append(Stored(latest[job], job, *what))
    return events


_Change = tuple[int, str, str] | tuple[int, str, str, str]
"""Milliseconds since 1970, the operation, the path, and a rename's destination."""


def _records(segment: str) -> Iterator[tuple[int, _Change | None]]:
    """Number and change of each transaction; None if it changes no name."""
    try:
        for _, element in ET.iterparse(io.StringIO(segment)):  # noqa: S314  # the NameNode's own file
            if element.tag == "RECORD":
                yield int(element.findtext("DATA/TXID", "")), _change(element)
                element.clear()
    except (ET.ParseError, ValueError) as error:
        raise ValueError(f"That is not an edit log in XML, as `hdfs oev -p xml` prints it: {error}.") from error


def _change(record: ET.Element) -> _Change | None:
    operation, path = _OPERATIONS.get(record.findtext("OPCODE", ""), ("", ""))
    if not operation:
        return None
    at = int(record.findtext("DATA/TIMESTAMP") or record.findtext("DATA/MTIME") or "0")
    source = _text(record, path)
    return (at, operation, source, _text(record, "DST")) if operation == "rename" else (at, operation, source)


def _text(record: ET.Element, tag: str) -> str:
    """The text of a field; Hadoop escapes in its own way what XML cannot hold."""
    return _MANGLED.sub(lambda match: chr(int(match[1], 16)), record.findtext(f"DATA/{tag}", ""))


def _place(path: str, root: str) -> tuple[str, str]:
    """The job that a path belongs to, and the path below it; no job if it lies elsewhere or is only being staged."""
    if not path.startswith(f"{root}/"):
        return "", path
    job, _, below = path.removeprefix(f"{root}/").partition("/")
    return ("", path) if job.startswith(".") else (job, below or ".")
