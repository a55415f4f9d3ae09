"""Misses: ends a batch that an output of this package did not take, though the function of ``foreachBatch`` went on.

``try: output.write(batch, number)`` with an ``except`` that only logs would have Spark commit a batch whose rows are
nowhere; so would a thread that nobody waits for. So the function's end is an error then, and Spark does it again.
A later write of the same rows that succeeds is as good as the first one.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    Notes = dict[object, "Miss"]  # by the call that has not taken it

PYSPARK = "pyspark.sql.streaming.readwriter"
QUERY_ID = "sql.streaming.queryId"
"""Spark's property of the threads and tasks of a query: its id."""


class MissedError(RuntimeError):
    """A batch that an output did not take."""


class Miss(NamedTuple):
    """A write that has not ended well.

    ``place`` is what no other output has, ``query`` the query's id, ``frame`` its rows.
    """

    output: str
    place: str
    number: int
    query: str
    why: str
    frame: Any


@contextmanager
def noting(output: str, place: str, frame: Any, number: int) -> Iterator[None]:
    """Note that an output has not taken a batch, until the block ends well."""
    # place: what no other output has; names are not unique.
    notes: Notes | None = getattr(getattr(sys.modules.get(PYSPARK), "DataStreamWriter", None), "ha_missed", None)
    if notes is None:  # no query of this process is guarded
        yield
        return
    call = object()
    notes[call] = miss = Miss(output, place, number, _query(frame), "it was still writing it", frame)
    try:
        yield
    except BaseException as error:
        notes[call] = miss._replace(why=next(iter(f"{error}".splitlines()), "") or type(error).__name__)
        raise
    notes.pop(call, None)
    for other, earlier in list(notes.items()):
        # Other rows for this output and batch are no second try: the first ones would be lost.
        if (earlier.place, earlier.number) == (place, number) and same_rows(earlier.frame, frame):
            notes.pop(other, None)


def same_rows(one: Any, other: Any) -> bool:
    """Return whether two frames are known to have the same rows: Spark compares what they were made of."""
    with suppress(Exception):  # py4j's, or they are no frames
        return one is other or bool(one.sameSemantics(other))
    return False


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
            for miss in _take(notes, frame, number):
                raise MissedError(
                    f"Output {miss.output!r} did not take batch {number} ({miss.why}), and the function of "
                    "foreachBatch went on: its rows would be lost. Let the error through; Spark does the batch again."
                )

        return method(self, batch)

    return given


def _take(notes: Notes, frame: Any, number: int) -> list[Miss]:
    """Remove what outputs did not take of a batch of this frame's query, and return it."""
    found = [(call, miss) for call, miss in list(notes.items()) if miss.number == number]
    query = _query(frame) if found else ""
    # Another query's output may take its batch of the same number meanwhile, which removes its note.
    return [miss for call, miss in found if miss.query in ("", query) and notes.pop(call, None) is not None]
