"""Misses: ends a batch that an output of this package did not take, though the function of ``foreachBatch`` went on.

``try: output.write(batch, number)`` with an ``except`` that only logs would have Spark commit a batch whose rows are
nowhere; so would a thread that nobody waits for. So the function's end is an error then, and Spark does it again.
A later try of the same function that succeeds is as good as the first one.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    Notes = dict[tuple[str, int], tuple[str, str]]  # by output and batch: the query's id, and why it has not taken it

PYSPARK = "pyspark.sql.streaming.readwriter"
QUERY_ID = "sql.streaming.queryId"
"""Spark's property of the threads and tasks of a query: its id."""


class MissedError(RuntimeError):
    """A batch that an output did not take."""


@contextmanager
def noting(output: str, frame: Any, number: int) -> Iterator[None]:
    """Note that an output has not taken a batch, until the block ends well."""
    notes: Notes | None = getattr(getattr(sys.modules.get(PYSPARK), "DataStreamWriter", None), "ha_missed", None)
    if notes is None:  # no query of this process is guarded
        yield
        return
    query = _query(frame)
    notes[output, number] = query, "it was still writing it"
    try:
        yield
    except BaseException as error:
        notes[output, number] = query, next(iter(f"{error}".splitlines()), "") or type(error).__name__
        raise
    notes.pop((output, number), None)


def _query(frame: Any) -> str:
    with suppress(Exception):  # py4j's: the JVM is gone, or it is no frame
        return str(frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID) or "")
    return ""


def change(writer: Any) -> None:
    """Have a class of PySpark's writers look at the end of each batch."""
    writer.ha_missed = {}
    writer.foreachBatch = _looking(writer.foreachBatch, writer.ha_missed)


def _looking(method: Any, notes: Notes) -> Any:
    @functools.wraps(method)
    def given(self: Any, func: Any) -> Any:
        def batch(frame: Any, number: int) -> None:
            _take(notes, frame, number)  # those of a try before
            func(frame, number)
            for output, why in _take(notes, frame, number):
                raise MissedError(
                    f"Output {output!r} did not take batch {number} ({why}), and the function of foreachBatch went on: "
                    "its rows would be lost. Let the error through; Spark does the batch again."
                )

        return method(self, batch)

    return given


def _take(notes: Notes, frame: Any, number: int) -> list[tuple[str, str]]:
    """Remove what outputs did not take of a batch of this frame's query; return their names, and why."""
    found = [each for each in list(notes) if each[1] == number]
    query = _query(frame) if found else ""
    # Another query's output may take its batch of the same number meanwhile, which removes its note.
    ours = [each for each in found if notes.get(each, (None,))[0] in ("", query)]
    return [(each[0], note[1]) for each in ours if (note := notes.pop(each, None)) is not None]
