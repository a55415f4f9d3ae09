"""Settling: a job's queries end after their present batches, or once they have processed all that there is.

A savepoint of a stopped job is to have no batch that was published and not committed. So the sidecar asks for it by a
file, not by a signal, which the JVM gets as well. From then on :class:`ha.spark.Output` begins no batch, and those that
it has begun are awaited. A job that resumes from there does interrupted batches again.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from ha.leadership.leadership import Leadership
from ha.program import settle_file
from ha.program.request_file import asked_watch
from ha.spark.supervision.flow import Flow, readers_first
from store.clock import BOOT_CLOCK, now
from store.errors import Invalid

POLL_S = 0.02


def settle_watch(path: Path, callback: Callable[[], object]) -> AbstractContextManager[None]:
    """Call back once when the sidecar asks for it, while the block lasts."""

    def look() -> bool:
        found = path.exists()
        if found:
            callback()
        return found

    return asked_watch(path, look, "ha-settle")


def settle(path: Path, leadership: Leadership, queries: Mapping[str, Any], graph: Iterable[Flow]) -> bool:
    """If the sidecar asks for it, let queries end in order (they may still run afterwards); return whether it does."""
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
    started = []
    for each in ending:
        with suppress(RuntimeError):  # no thread can be had: the end of the leadership stops this query
            each.start()
            started.append(each)
    for each in started:
        each.join(max(0.0, end - now()))
    return True


def _drain(queries: Mapping[str, Any], graph: Iterable[Flow], end: float) -> bool:
    """Have the queries process all that there is, writers first; returns whether they have."""
    try:
        names = readers_first(queries, graph)
    except Invalid:  # they feed each other, so the end of that is unknown
        return False
    for name in reversed(names):
        done = threading.Event()

        def process(query: Any = queries[name], done: threading.Event = done) -> None:
            with suppress(Exception):  # Spark's, if the query has failed, or py4j's
                query.processAllAvailable()
                done.set()

        working = threading.Thread(target=process, name="ha-drain", daemon=True)
        try:
            working.start()
        except RuntimeError:
            return False
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
