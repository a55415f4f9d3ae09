"""Settling: a job's queries end after their present batches, or once they have processed all that there is.

A savepoint of a stopped job is to have no batch that was published and not committed. So the sidecar asks for it by a
file, not by a signal, which the JVM gets as well. From then on :class:`ha.spark.Output` begins no batch any more, and
those that it has begun are awaited. Interrupted batches are done again by whoever goes on from there.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ha.leadership import settle_file
from ha.leadership.leadership import Leadership
from ha.spark.asked_watch import AskedWatch
from ha.spark.supervision.flow import Edges, readers_first
from store.clock import BOOT_CLOCK, now
from store.errors import Invalid

POLL_S = 0.02


class SettleWatch(AskedWatch):
    """Calls back once when the sidecar asks for it, while its block lasts."""

    def __init__(self, path: Path, callback: Callable[[], object]) -> None:
        """Look for nothing yet."""

        def look() -> bool:
            found = path.exists()
            if found:
                callback()
            return found

        super().__init__(path, look, "ha-settle")


def settle(path: Path, leadership: Leadership, queries: Mapping[str, Any], graph: Iterable[Edges]) -> bool:
    """Let the queries of a job end in order, if the sidecar asks for that. They may still run afterwards.

    Args:
        path: of the file by which the sidecar asks.
        leadership: of the job.
        queries: those that run, by name.
        graph: what they read and write.

    Returns:
        Whether the sidecar asks for it.
    """
    wanted = settle_file.asked(path)
    if wanted is None:
        return False
    end = now() + wanted.seconds
    if wanted.drain and _drain(queries, graph, end):
        settle_file.note_drained(path)
    leadership.settling.set()
    settle_file.begin(path)  # for the format ha, which is in other processes
    ending = [
        threading.Thread(target=_end, args=(each, end), name="ha-settle", daemon=True) for each in queries.values()
    ]
    for each in ending:
        each.start()
    for each in ending:
        each.join(max(0.0, end - now()))
    return True


def _drain(queries: Mapping[str, Any], graph: Iterable[Edges], end: float) -> bool:
    """Have the queries process all that there is, writers first; returns whether they have."""
    try:
        names = readers_first(queries, graph)
    except Invalid:  # they feed each other, so nobody knows when that is over
        return False
    for name in reversed(names):
        done = threading.Event()

        def process(query: Any = queries[name], done: threading.Event = done) -> None:
            with suppress(Exception):  # Spark's, if the query has failed, or py4j's
                query.processAllAvailable()
                done.set()

        working = threading.Thread(target=process, name="ha-drain", daemon=True)
        working.start()
        working.join(max(0.0, end - now()))
        if not done.is_set():
            return False
    return True


def _end(query: Any, end: float) -> None:
    """Stop a query after its present batch."""
    with suppress(Exception):  # py4j's, if the JVM is gone, and the query with it
        before = _batch(query)
        while query.isActive and query.status["isTriggerActive"] and _batch(query) == before and now() < end:
            BOOT_CLOCK.sleep(POLL_S)
        query.stop()


def _batch(query: Any) -> int | None:
    progress = query.lastProgress
    return progress["batchId"] if progress else None
