"""Query events: a listener that takes Spark's events as cheaply as possible, and reads their progress.

PySpark makes Python objects of an event by some eighty calls into the JVM. For every batch that takes 15 ms of a core,
and up to ten times that on the clock. Here it is two calls, because only the event's own JSON is read. For that, the
JVM gets this listener itself and not PySpark's wrapper of it. So the listener relies on a private name of PySpark
(:mod:`ha.spark.session.private_names`), and has one itself, ``_jlistener``. Tests with a real Spark fail if these
change.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from ha.hook.query_rules import FILE
from ha.leadership.lead import supervised
from ha.leadership.leadership import Leadership
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from ha.spark.queries.query_ends import QueryEnds
from ha.spark.session.private_names import java_listener
from leader.layout.checkpoint import MAX_ID, Metadata
from store.errors import StoreError

SST_FILES = "rocksdbSstFileSize"  # among Spark's own metrics of a state

REPAIRED = ("numSnapshotsAutoRepaired", "rocksdbNumSnapshotsAutoRepaired")
"""In newer Sparks: snapshots that were repaired as a batch loaded them, in memory and in RocksDB."""


class QueryEnded(NamedTuple):
    """The end of one run of a query: its name, if it has one, and the exception with its causes, if there was one."""

    name: str | None
    run_id: str
    error: str | None


class Reports(Protocol):
    """Told of everything that happens to queries; every method returns at once."""

    def started(self, name: str | None) -> object:
        """A query has started."""

    def progressed(self, progress: "QueryProgress") -> object:
        """A query has completed a batch."""

    def idle(self, name: str | None) -> object:
        """A query has nothing to do."""

    def ended(self, ended: QueryEnded) -> object:
        """A query has ended."""


def publish_checkpoints(
    spark: SparkSession,
    leadership: Leadership,
    ended: Callable[[QueryEnded], object] | None = None,
    reports: Reports | None = None,
    ends: QueryEnds | None = None,
) -> CheckpointPublisher:
    """Publish each completed batch of each named query as a checkpoint: first in HDFS, then in ZooKeeper's mirror.

    Queries need checkpoints at :func:`ha.spark.checkpoint_location`. Call this before they start, or when reattaching.
    Batches that an earlier driver completed without publishing them are published now. It ends with the leadership.

    Args:
        spark: the session of the queries.
        leadership: of the job.
        ended: called at the end of each query; it must return at once.
        reports: gets all events of queries; None if there is no receiver.
        ends: told of the runs of queries, for a block that looks at its queries when it is left.

    Raises:
        Fenced: another leader has taken over.
        Py4JError: the JVM of the session is gone.
        Unreadable: the store holds a name among the job's checkpoints that cannot be read; it may be the newest one.
    """
    with suppress(StoreError):  # the thread asks again; only Fenced and Unreadable are for the caller
        leadership.checkpoints.state()
    report = os.environ.get("HA_QUERIES") if supervised(leadership.job) else None
    publisher = CheckpointPublisher(leadership, file=lambda: Path(f"{report}{FILE}") if report else None)
    publisher.start()
    listener = QueryListener(publisher.completed, publisher.progressed, ended, reports, ends)
    publisher.attach(spark.streams, listener)
    for query in spark.streams.active:  # of a program that has died, under `ha run --engine`
        listener.runs(query.name, str(query.runId))
    leadership.on_revoked(publisher.stop)
    return publisher


class QueryListener(StreamingQueryListener):
    """Takes the events of the JVM. Spark's bus waits for its methods, so each call in them must return at once."""

    def __init__(
        self,
        started: Callable[[str | None], object],
        progressed: Callable[[str | None, int, Metadata], object],
        ended: Callable[[QueryEnded], object] | None = None,
        reports: Reports | None = None,
        ends: QueryEnds | None = None,
    ) -> None:
        """Hear nothing yet: give it to ``spark.streams.addListener``."""
        # `started` gets the name of each query that starts, and `progressed` the name of a query, a complete batch of
        # it, and the batch's metadata.
        self._started = started
        self._progressed = progressed
        self._ended = ended
        self._reports = reports
        self._ends = ends
        self._names: dict[str, str | None] = {}  # by run id, because the event of an end has no name
        self._java: Any = None

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """A query starts."""
        name = event.name()
        if self._ends is not None:
            self._ends.started(event.runId().toString(), name or event.id().toString())
        if self._ended is not None or self._reports is not None:
            self._names[event.runId().toString()] = name
        if self._reports is not None:
            self._reports.started(name)
        self._started(name)

    def runs(self, name: str | None, run_id: str) -> None:
        """A query runs whose start this listener has not heard."""
        self._names[run_id] = name
        if self._ends is not None:
            self._ends.started(run_id, name or run_id)
        self._started(name)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch is in the commit log."""
        progress = read(event.progress().json())
        if self._reports is not None:
            self._reports.progressed(progress)
        self._progressed(progress.name, progress.batch_id, progress.metadata)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing was completed, because there is nothing to do."""
        if self._reports is not None:
            self._reports.idle(self._names.get(event.runId().toString()))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """A query has ended; an earlier event has announced its last batch."""
        if self._ended is None and self._reports is None and self._ends is None:
            return
        run_id, error = event.runId().toString(), event.exception()
        ended = QueryEnded(self._names.pop(run_id, None), run_id, error.get() if error.isDefined() else None)
        if self._reports is not None:
            self._reports.ended(ended)
        if self._ended is not None:
            self._ended(ended)
        if self._ends is not None:  # the last one: who waits for it finds the others' notes
            self._ends.ended(run_id, ended.error)

    @property
    def _jlistener(self) -> Any:
        if self._java is None:
            self._java = java_listener(self)
        return self._java

    class Java:
        """The Java interface, for py4j."""

        implements: ClassVar[list[str]] = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


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
