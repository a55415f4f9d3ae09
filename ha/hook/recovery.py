"""Recovery: whether Spark can go on with a query's source and sink at all, wherever its checkpoint is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGINS_ANEW = (
    "its rows are in the memory of its driver, and Spark continues no such query: it begins anew at each start."
)
FORGETS = (
    "its source socket keeps nothing: rows that were read, but are in no batch that is done, are lost with the driver, "
    "and the rows after a new start may be as well. Take a source that keeps its rows, as files or Kafka."
)


def lost(writer: Any, form: str, mode: str) -> str:
    """Return why a query of this format and output mode loses rows or begins anew with its driver; empty if not."""
    if form == "memory" and mode != "complete":  # Spark: DataStreamWriter.startQuery, recoverFromCheckpointLocation
        return BEGINS_ANEW
    return FORGETS if "socket" in _sources(writer) else ""


def _sources(writer: Any) -> Iterator[str]:
    with suppress(Exception):  # py4j's: then the start says what is wrong
        leaves = writer._df._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001
        for number in range(leaves.size()):
            yield str(leaves.apply(number).toString())
