"""Query reports: Spark's news of each query, and the file in which the driver keeps it for the sidecar's metrics.

Spark's listener bus waits for :class:`QueryReports`, so that only changes numbers; a thread replaces the file.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ha.program.files import write
from ha.program.query_report import FAILED, FINISHED, MOST_QUERIES, RUNNING, QueryReport
from store.clock import now

if TYPE_CHECKING:  # a sidecar has no PySpark
    from ha.spark.queries.query_events import QueryEnded, QueryProgress

PAUSE_S = 1.0  # between two reports: Prometheus asks less often

CLOSE_TIMEOUT_S = 2.0

_log = logging.getLogger("ha")


class QueryReports:
    """The named queries of one program; every method returns at once."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        """Know no query yet; ``clock`` gives seconds of the boot clock."""
        self._clock = clock
        self._queries: dict[str, QueryReport] = {}
        self._batches: dict[str, int] = {}
        self._lock = threading.Lock()
        self.changed = threading.Event()  # set by each change

    def resume(self, reports: Iterable[QueryReport]) -> None:
        """Resume the reports of a program that has died, so that counters do not fall."""
        with self._lock:
            self._queries = {each.name: each for each in reports}

    def all(self) -> list[QueryReport]:
        """Return the reports of all queries."""
        with self._lock:
            return list(self._queries.values())

    def started(self, name: str | None) -> None:
        """A query has started, for the first time or again."""
        if (query := self._query(name)) is not None:
            query.starts += 1
            query.state = RUNNING
            query.fresh_at = query.fresh_at or self._clock()
            self.changed.set()

    def progressed(self, progress: "QueryProgress") -> None:
        """A query has completed a batch."""
        query = self._query(progress.name)
        if query is None or self._batches.get(query.name) == progress.batch_id:
            return
        replayed = query.name not in self._batches and not progress.num_input_rows
        self._batches[query.name] = progress.batch_id
        known = progress.metadata
        query.fresh_at = self._clock()
        query.batches += 1
        query.input_rows += known.rows or 0
        # The first batch of a program may have been published by the one before it; then it is not read again.
        query.skipped += 0 if replayed else progress.skipped
        query.repaired += progress.repaired
        query.batch_rows = known.rows
        query.batch_seconds = None if known.duration_ms is None else known.duration_ms / 1000
        query.state_rows, query.state_bytes = known.state_rows, known.state_bytes
        query.checkpoint_bytes = progress.checkpoint_bytes
        query.backlog, query.watermark_lag = progress.backlog, progress.watermark_lag
        self.changed.set()

    def committed(self, name: str, batch: int) -> None:
        """A batch is in the commit log of a query; nothing else is known of it."""
        query = self._query(name)
        before = self._batches.get(name)
        if query is not None and before != batch:
            query.state, query.starts, query.fresh_at = RUNNING, 1, self._clock()
            query.batches += max(1, batch - before) if before is not None else 0
            self._batches[name] = batch
            self.changed.set()

    def idle(self, name: str | None) -> None:
        """A query has nothing to do: its newest checkpoint is as fresh as its input."""
        if (query := self._query(name)) is not None:
            query.fresh_at = self._clock()
            self.changed.set()

    def ended(self, ended: "QueryEnded") -> None:
        """A query has ended."""
        if (query := self._query(ended.name)) is not None:
            query.state = FINISHED if ended.error is None else FAILED
            query.failures += ended.error is not None
            self.changed.set()

    def shows(self, name: str, state: str) -> None:
        """A query is in this state, says who supervises it."""
        if (query := self._query(name)) is not None and query.state != state:
            query.state = state
            self.changed.set()

    def _query(self, name: str | None) -> QueryReport | None:
        if not name:
            return None
        with self._lock:
            if name not in self._queries and len(self._queries) < MOST_QUERIES:
                self._queries[name] = QueryReport(name)
        return self._queries.get(name)


class ReportFile:
    """Keeps the reports in a file while its block lasts."""

    def __init__(self, path: Path, reports: QueryReports) -> None:
        """Write nothing yet; each run of a program has a file of its own."""
        self._path, self._reports = path, reports
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ha-reports", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._reports.changed.set()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        failing = closing = False
        while not closing:
            self._reports.changed.wait()
            self._reports.changed.clear()
            closing = self._closing.is_set()
            try:
                write(self._path, self._reports.all())
                failing = False
            except OSError as error:
                if not failing:
                    _log.warning("The metrics of the queries stand still: %s.", error.strerror)
                failing = True
            self._closing.wait(PAUSE_S)
