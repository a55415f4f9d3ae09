"""Query events: a listener that takes Spark's events as cheaply as possible.

PySpark makes Python objects of an event by some eighty calls into the JVM. For every batch that takes 15 ms of a core,
and up to ten times that on the clock. Here it is two calls, because only the event's own JSON is read. For that, the
JVM gets this listener itself and not PySpark's wrapper of it. So the listener relies on a private name of PySpark
(:mod:`ha.spark.session.private_names`), and has one itself, ``_jlistener``. Tests with a real Spark fail if these
change.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from ha.hook.query_rules import FILE
from ha.leadership.lead import supervised
from ha.leadership.leadership import Leadership
from ha.spark.queries.checkpoint_publisher import CheckpointPublisher
from ha.spark.queries.query_failures import QueryEnds
from ha.spark.queries.query_reports import QueryEnded, QueryReports, read
from ha.spark.session.private_names import java_listener
from leader.layout.checkpoint import Metadata
from store.errors import StoreError


def publish_checkpoints(
    spark: SparkSession,
    leadership: Leadership,
    ended: Callable[[QueryEnded], object] | None = None,
    reports: QueryReports | None = None,
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
    listener = QueryListener(publisher.completed, publisher.progressed, ended or bool, reports, ends)
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
        ended: Callable[[QueryEnded], object] = bool,
        reports: QueryReports | None = None,
        ends: QueryEnds | None = None,
    ) -> None:
        """Hear nothing yet: give it to ``spark.streams.addListener``."""
        # `started` gets the name of each query that starts, and `progressed` the name of a query, a complete batch of
        # it, and the batch's metadata.
        self._started, self._progressed, self._ended = started, progressed, ended
        self._reports, self._ends = reports, ends or QueryEnds()
        self._names: dict[str, str | None] = {}  # by run id, because the event of an end has no name
        self._java: Any = None

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """A query starts."""
        name, run_id = event.name(), event.runId().toString()
        self._ends.started(run_id, name or event.id().toString())
        self._names[run_id] = name
        if self._reports is not None:
            self._reports.started(name)
        self._started(name)

    def runs(self, name: str | None, run_id: str) -> None:
        """A query runs whose start this listener has not heard."""
        self._names[run_id] = name
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
        run_id, error = event.runId().toString(), event.exception()
        ended = QueryEnded(self._names.pop(run_id, None), run_id, error.get() if error.isDefined() else None)
        if self._reports is not None:
            self._reports.ended(ended)
        self._ended(ended)
        self._ends.ended(run_id, ended.error)  # the last one: who waits for it finds the others' notes

    @property
    def _jlistener(self) -> Any:
        if self._java is None:
            self._java = java_listener(self)
        return self._java

    class Java:
        """The Java interface, for py4j."""

        implements: ClassVar[list[str]] = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]
