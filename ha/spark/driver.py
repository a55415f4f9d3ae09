"""The driver's side: completed batches become the job's checkpoints.

Spark's own commit log says what is complete; its events only say when to look, and what else is known of a batch. An
event can be lost in a crash, after the commit and before the publication: so the newest commit that is found at the
start is published as well, without metadata.

A batch costs the NameNode three requests: a list of the commits, an id from the counter, and the publication.
"""

import logging
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from pyspark.sql import SparkSession

from ha.leadership import Leadership
from ha.spark.commits import newest_commit, queries
from ha.spark.listener import QueryListener
from ha.spark.progress import Progress
from leader.checkpoint import NOTHING
from leader.errors import Fenced, InvalidName
from leader.names import SPARK
from store.errors import StoreError

MAX_WAITING = 256
"""Queries that can wait for publication; each waits once, however many of its batches were completed."""

RETRY = 0.5
"""Seconds until a query is looked at again when the store did not answer."""

CLOSE_WITHIN = 5.0
"""Seconds that closing waits for what was completed last to be published."""

_log = logging.getLogger("ha")


class CheckpointPublisher:
    """Publishes on a thread of its own, until closed or until the leadership ends."""

    def __init__(self, spark: SparkSession, leadership: Leadership) -> None:
        """Start to publish; see :func:`publish_checkpoints`."""
        self._leadership = leadership
        self._streams = spark.streams
        self._waiting: dict[str, None] = {}  # in the order in which they came
        self._progress: dict[str, Progress] = {}  # what was said last of each query
        self._warned: set[str | None] = set()
        self._look_around = True
        self._closing = False
        self._stopped = False
        with suppress(StoreError):  # the thread asks again; what cannot be read, and a fence, are the caller's to know
            leadership.checkpoints.state()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ha-checkpoints", daemon=True)
        self._listener = QueryListener(self.completed, self.progressed)
        self._thread.start()
        self._streams.addListener(self._listener)
        leadership.on_revoked(self.stop)

    def close(self) -> None:
        """Publish what has been completed until now, and stop; takes 5 s at most. Idempotent."""
        with self._changed:
            first, self._closing, self._look_around = not self._closing, True, True
            self._changed.notify_all()
        self._thread.join(CLOSE_WITHIN)
        self.stop()
        if first:
            try:
                self._streams.removeListener(self._listener)
            except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone: then the listener is, too
                _log.debug("The listener could not be removed: %s", error)

    def stop(self) -> None:
        """Publish nothing more, and do not wait for anything."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def completed(self, query: str | None) -> None:
        """A batch of this query may be complete: have its commit log looked at soon. Returns at once."""
        if query is None:
            self._warn(None, "A streaming query has no name, so its checkpoints are not published: set queryName.")
            return
        with self._changed:
            if query in self._waiting or len(self._waiting) < MAX_WAITING:
                self._waiting[query] = None
                self._changed.notify_all()
                return
        self._warn("", f"More than {MAX_WAITING} queries wait for publication: some are published late.")

    def _warn(self, about: str | None, sentence: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            _log.warning("%s: %s", self._leadership.job, sentence)

    # --- the thread

    def _run(self) -> None:
        try:
            while (query := self._next()) is not None:
                self._serve(query)
        except Fenced as error:
            _log.info("%s: no more checkpoints are published: %s", self._leadership.job, error)
        except Exception:  # noqa: BLE001  # the driver goes on; its checkpoints are a report
            _log.exception("%s: the publication of checkpoints has failed and stops.", self._leadership.job)
        self.stop()

    def _serve(self, query: str) -> None:
        """Do one thing; if the store does not answer, do it again later."""
        try:
            if query:
                self._publish(query)
            else:
                self._find()
        except StoreError as error:
            _log.warning("%s: the checkpoint of %s is published later: %s", self._leadership.job, query or "all", error)
            with self._changed:
                self._look_around = True
                self._changed.wait_for(lambda: self._stopped, RETRY)

    def _next(self) -> str | None:
        """Wait for a query to look at; an empty name means all of them, None the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._closing or self._look_around or self._waiting)
            if self._stopped:
                return None
            if self._look_around:
                self._look_around = False
                return ""
            if self._waiting:
                query = next(iter(self._waiting))
                del self._waiting[query]
                return query
            return None

    def _find(self) -> None:
        """Look at every query that has a checkpoint, also at those that have not said anything."""
        for query in queries(self._leadership):
            self.completed(query)

    def _publish(self, query: str) -> None:
        try:
            self._publish_newest(query)
        except InvalidName as error:  # this one's name, or there are too many: the others go on
            self._warn(query, f"The checkpoints of a query are not published: {error}")

    def _publish_newest(self, query: str) -> None:
        before = self._progress.get(query)
        batch = newest_commit(self._leadership, query)
        if batch is not None:
            said = {each.batch_id: each.metadata for each in (before, self._progress.get(query)) if each is not None}
            self._leadership.checkpoints.completed(query, batch, said.get(batch, NOTHING))
        elif before is not None:  # Spark commits a batch before it says so; what it has said since is yet to be found
            self._warn(
                query,
                f"Query {query!r} makes progress, and there is no commit at {self._leadership.path(SPARK)}/{query}, so "
                "its checkpoints are not published: set its checkpointLocation to ha.spark.checkpoint_location("
                "leadership, name).",
            )

    def progressed(self, progress: Progress) -> None:
        """Spark says that a batch is complete. Returns at once."""
        query = progress.name
        if query is not None:
            with self._changed:
                self._progress[query] = progress
                if len(self._progress) > MAX_WAITING:
                    del self._progress[next(iter(self._progress))]
        self.completed(query)


def publish_checkpoints(spark: SparkSession, leadership: Leadership) -> CheckpointPublisher:
    """Publish each completed batch of each named query as the job's checkpoint, HDFS first, then ZooKeeper's copy.

    The queries must have their checkpoint at :func:`ha.spark.checkpoint_location`. Call this before they are started;
    what an earlier driver completed and did not come to publish is published now. It ends with the leadership.

    Raises:
        Fenced: another leader has taken over.
        Py4JError: the session's JVM is gone.
        Unreadable: among the job's checkpoints there is a name that cannot be read; it may be the newest one's.
    """
    return CheckpointPublisher(spark, leadership)
