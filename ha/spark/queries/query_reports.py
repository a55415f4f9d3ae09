"""Query reports: Spark's news of each query, and the file in which the driver keeps it for the sidecar's metrics.

Spark's listener bus waits for :class:`QueryReports`, so that only changes numbers; a thread replaces the file.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from ha.program.files import write
from ha.program.query_report import FAILED, FINISHED, MOST_QUERIES, RUNNING, QueryReport
from leader.layout.checkpoint import MAX_ID, Metadata
from store.clock import now

PAUSE_S = 1.0  # between two reports: Prometheus asks less often

CLOSE_TIMEOUT_S = 2.0

SST_FILES = "rocksdbSstFileSize"  # among Spark's own metrics of a state

REPAIRED = ("numSnapshotsAutoRepaired", "rocksdbNumSnapshotsAutoRepaired")
"""In newer Sparks: snapshots that were repaired as a batch loaded them, in memory and in RocksDB."""

_log = logging.getLogger("ha")


class QueryEnded(NamedTuple):
    """The end of one run of a query: its name, if it has one, and the exception with its causes, if there was one."""

    name: str | None
    run_id: str
    error: str | None


class _StateOperator(msgspec.Struct, rename="camel"):
    num_rows_total: int = 0
    memory_used_bytes: int = 0
    custom_metrics: dict[str, Any] = {}


class _Source(msgspec.Struct, rename="camel"):
    start_offset: Any = None
    end_offset: Any = None
    num_input_rows: int | None = None
    latest_offset: Any = None


class QueryProgress(msgspec.Struct, rename="camel"):
    """The needed part of Spark's ``StreamingQueryProgress``, under its names in another case."""

    batch_id: int
    name: str | None = None
    batch_duration: int | None = None
    duration_ms: dict[str, Any] = {}
    num_input_rows: int | None = None
    state_operators: list[_StateOperator] = []
    sources: list[_Source] = []
    timestamp: str = ""
    event_time: dict[str, Any] = {}

    @property
    def metadata(self) -> Metadata:
        """The metadata of its batch; None for each value that it does not give."""
        stateful = bool(self.state_operators)
        return Metadata(
            duration_ms=_number(self._duration),
            rows=_number(self.num_input_rows),
            state_rows=_number(sum(each.num_rows_total for each in self.state_operators)) if stateful else None,
            state_bytes=_number(sum(each.memory_used_bytes for each in self.state_operators)) if stateful else None,
            offsets=summary(source.end_offset for source in self.sources),
        )

    @property
    def backlog(self) -> int | None:
        """Latest offsets less the processed ones, of the sources that count their records, as Kafka's; None if none."""
        pairs = [(_records(each.latest_offset), _records(each.end_offset)) for each in self.sources]
        known = [max(0, latest - end) for latest, end in pairs if latest is not None and end is not None]
        return sum(known) if known else None

    @property
    def skipped(self) -> int:
        """Offsets of topics, as Kafka's, that the batch passed over without a row."""
        # Kafka has deleted such records before they were read (`failOnDataLoss=false`), or has compacted them, or they
        # mark a transaction. Source by source, because a source that was read twice would hide the loss of another.
        counted = ((each, _topics(each.start_offset), _topics(each.end_offset)) for each in self.sources)
        return sum(
            max(0, _passed(start, end) - each.num_input_rows)
            for each, start, end in counted
            if start is not None and end is not None and each.num_input_rows is not None
        )

    @property
    def repaired(self) -> int:
        """State snapshots that Spark has repaired as the batch loaded them (``autoSnapshotRepair``)."""
        found = [each.custom_metrics.get(name) for each in self.state_operators for name in REPAIRED]
        return sum(count for count in found if isinstance(count, int))

    @property
    def watermark_lag(self) -> float | None:
        """Seconds from the watermark to the start of the batch; None without a watermark, or as long as it is 0."""
        try:
            begun, watermark = map(datetime.fromisoformat, (self.timestamp, self.event_time["watermark"]))
            return (begun - watermark).total_seconds() if watermark.timestamp() > 0 else None
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def checkpoint_bytes(self) -> int | None:
        """Size of the files of all states in RocksDB; None if there are none."""
        sizes = [each.custom_metrics.get(SST_FILES) for each in self.state_operators]
        known = [size for size in sizes if isinstance(size, int)]
        return sum(known) if known else None

    @property
    def _duration(self) -> int | None:
        """Milliseconds of the batch; Spark 3.5 gives them among its parts only."""
        whole = self.duration_ms.get("triggerExecution") if self.batch_duration is None else self.batch_duration
        return whole if isinstance(whole, int) else None


_decoder = msgspec.json.Decoder(QueryProgress)


def read(text: str) -> QueryProgress:
    """Read the JSON of a ``StreamingQueryProgress``."""
    return _decoder.decode(text)


def summary(offsets: Iterable[Any]) -> str:
    """Summarize how far each source was read: the sum of each topic, or of whatever its offset has at the top."""
    # So the text is as long for a thousand partitions as for one. The query's own log holds the offsets themselves.
    return " ".join(filter(None, map(_one, offsets)))


def _one(offset: Any) -> str:
    if isinstance(offset, dict):
        return " ".join(f"{name}={_sum(value)}" for name, value in offset.items() if _sum(value) is not None)
    return "" if offset is None else str(offset)


def _sum(value: Any) -> int | None:
    """Return the sum of all whole numbers in a value; None if there is none."""
    if isinstance(value, dict):
        found = [each for each in map(_sum, value.values()) if each is not None]
        return sum(found) if found else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _records(offset: Any) -> int | None:
    """Return an offset as a number of records: one number, or one for each partition of each topic."""
    nested = isinstance(offset, dict) and all(isinstance(each, dict) for each in offset.values())
    return _sum(offset) if nested or not isinstance(offset, dict) else None


def _topics(offset: Any) -> dict[tuple[str, str], int] | None:
    """Return an offset as Kafka has it, by topic and partition; None if it is another kind of offset."""
    if not isinstance(offset, dict) or not all(isinstance(each, dict) for each in offset.values()):
        return None
    found = {(topic, number): at for topic, each in offset.items() for number, at in each.items()}
    return found if all(isinstance(at, int) for at in found.values()) else None


def _passed(start: dict[tuple[str, str], int], end: dict[tuple[str, str], int]) -> int:
    """Return the offsets between two, of the partitions that have both: where a new one was begun is not known."""
    return sum(max(0, at - start[partition]) for partition, at in end.items() if partition in start)


def _number(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MAX_ID else None


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

    def progressed(self, progress: QueryProgress) -> None:
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

    def ended(self, ended: QueryEnded) -> None:
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
