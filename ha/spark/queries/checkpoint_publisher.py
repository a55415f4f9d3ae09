"""CheckpointPublisher: publishes each batch in Spark's commit logs as a checkpoint of the job.

The commit log alone says which batches are complete. Events of Spark only say when to look, and add a batch's metadata.
If none comes for a minute, the logs are looked at nevertheless.
A crash can lose an event after the commit, so the start publishes the newest commit of every query, without metadata.

A driver that uses this package hears Spark's events: :func:`ha.spark.queries.query_events.publish_checkpoints`. For a
program that does not, the sidecar of ``ha run --spark`` looks at the logs from time to time: :class:`SidecarPublisher`.

A batch costs the NameNode three requests: a list of the commits, an id from the counter, and the publication.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from ha.config.stores import Stores
from ha.hook.query_rules import FILE
from ha.leadership.leadership import Leadership, SidecarHolder, mirror_of_checkpoints
from ha.spark.stored.commit_log import is_query, newest_commit
from ha.spark.stored.ledger_watch import LedgerWatch
from ha.spark.stored.operator_names import OperatorNames
from ha.spark.stored.unguarded import Unguarded
from leader.contender.runtime import Runtime
from leader.errors import InvalidName, NotLeader, Unreadable
from leader.layout.checkpoint import NOTHING, Metadata
from leader.layout.names import SPARK, LeaderDirectory
from store.errors import StoreError

MAX_WAITING = 256  # queries that can wait for publication; each waits once, however many batches it has completed
RETRY_S = 0.5  # pause before the next look when the store did not answer
CLOSE_TIMEOUT_S = 5.0  # longest time that closing waits for the publication of the last batches

SOONEST_S, LATEST_S = 1.0, 10.0
"""Pause between two looks of a poll: after a new batch, and at most; it doubles in between. A look costs the NameNode
two requests for one query, and a new batch two more."""

SILENT_S = 60.0
"""Without an event for so long, the logs of a driver are looked at nevertheless: its listener may have been lost."""

PATIENCE = 8
"""Looks, within 54 s of a poll, before a program without any checkpoint below the leader directory causes a warning.
That of a query in Python is told before its start."""

_log = logging.getLogger("ha")


class CheckpointPublisher:
    """Publishes on a thread of its own, until it is closed or the leadership ends.

    :func:`ha.spark.publish_checkpoints` returns one. As a context manager it closes itself at the end of the block.
    """

    def __init__(
        self,
        leadership: Leadership,
        *,
        poll: bool = False,
        committed: Callable[[str, int], object] | None = None,
        file: Callable[[], Path | None] = lambda: None,
    ) -> None:
        # With `poll` it looks at the commit logs from time to time, because no event tells that a batch is complete.
        # `committed` is called with the name of a query and its newest batch, at each look. `file` is as for
        # `ha.spark.stored.unguarded.Unguarded`.
        self.unguarded = Unguarded(leadership.own, file)
        self._committed = committed
        self._leadership = leadership
        self._poll_s = SOONEST_S if poll else None
        self._waiting: dict[str, None] = {}  # in the order of their events
        self._said: dict[str, tuple[int, Metadata]] = {}  # by query, the batch of the last event and its metadata
        self._published: dict[str, tuple[int, Metadata]] = {}
        self._names = OperatorNames(leadership)
        self._ledger = LedgerWatch(
            leadership, lambda: (found := file()) and found.with_name(found.name.removesuffix(FILE))
        )
        self._warned: set[str | None] = set()
        self._failing = False
        self._without = 0  # looks in a row that have found no checkpoint
        self._look_around = True
        self._silent = False  # whether the present look is made because no event came
        self._closing = False
        self._stopped = False
        self._streams: Any = None
        self._listener: Any = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ha-checkpoints", daemon=True)

    def start(self) -> None:
        """Start the thread; it begins with what an earlier program has completed."""
        self._thread.start()

    def attach(self, streams: Any, listener: Any) -> None:
        """Add a listener that calls :meth:`completed` and :meth:`progressed` to Spark's streams, until closed."""
        self._streams, self._listener = streams, listener
        streams.addListener(listener)

    def close(self) -> None:
        """Publish what has been completed until now, and stop; takes 5 s at most. Idempotent."""
        with self._changed:
            first, self._closing, self._look_around = not self._closing, True, True
            self._changed.notify_all()
        self._thread.join(CLOSE_TIMEOUT_S)
        if first and self._thread.is_alive():
            _log.warning("%s: what it completed last is not published.", self._leadership.job)
        self.stop()
        if first and self._streams is not None:
            try:
                self._streams.removeListener(self._listener)
            except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone, and the listener with it
                _log.debug("The listener could not be removed: %s", error)

    def stop(self) -> None:
        """Publish nothing more, and wait for nothing; the store fences what is under way."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def completed(self, query: str | None) -> None:
        """Have a query's commit log looked at soon, because a batch may be complete. Returns at once."""
        if query is None:
            if "" not in self.unguarded.found:
                self._warn(None, "A streaming query has no name, so its checkpoints are not published: set queryName.")
            return
        with self._changed:
            if query in self._waiting or len(self._waiting) < MAX_WAITING:
                self._waiting[query] = None
                self._changed.notify_all()
                return
        self._warn("", f"More than {MAX_WAITING} queries wait for publication: some are published late.")

    def tell_unguarded(self, query: str, why: str) -> None:
        """Report an unguarded query that starts; the next look shows it. Returns at once."""
        self.unguarded.tell(query, why)
        with self._changed:
            self._look_around = True
            self._changed.notify_all()

    def progressed(self, query: str | None, batch: int, metadata: Metadata) -> None:
        """Take note of a batch that Spark says is complete, and of its metadata. Returns at once."""
        if query is not None:
            with self._changed:
                self._said[query] = batch, metadata
                if len(self._said) > MAX_WAITING:
                    del self._said[next(iter(self._said))]
        self.completed(query)

    def look(self, *names: str) -> bool | None:
        """Publish what these queries have committed since the last look; all queries if none is named."""
        # Returns whether there was a new batch; None if the store did not answer or did not take it. Raises
        # `Unreadable` if the store holds a name among the job's checkpoints that cannot be read.
        try:
            new = [query for query in names or self._all() if self._publish(query)]
        except StoreError as error:
            if not self._failing:
                _log.warning("%s: a checkpoint is published later: %s", self._leadership.job, error)
            self._failing = True
            return None
        self._failing = False
        return bool(new)

    # --- one look

    def _all(self) -> list[str]:
        names = self._leadership.names(SPARK)
        self.unguarded.look(names)
        found = [name for name in sorted(names) if is_query(name)]
        self._without = 0 if found else self._without + 1
        if self._without == PATIENCE and not self._published:
            # A checkpoint that a program keeps elsewhere is not fenced; without a warning that goes unnoticed.
            self._warn(
                "",
                "No query has a checkpoint below the leader directory yet. If the program has started one, it "
                "keeps its checkpoint elsewhere, where no takeover fences it or goes on with it.",
            )
        return found

    def _publish(self, query: str) -> bool:
        """Publish a query's newest batch; returns whether that is new."""
        try:
            return self._publish_newest(query)
        except InvalidName as error:  # this query cannot be published, but the others can
            self._warn(query, f"The checkpoints of a query are not published: {error}")
            return False

    def _publish_newest(self, query: str) -> bool:
        before = self._said.get(query)
        batch = newest_commit(self._leadership, query)
        if batch is None:
            if before is not None:  # Spark commits a batch before its event; a later event may have a later commit
                self._warn(
                    query,
                    f"Query {query!r} makes progress, but has no commit at {self._leadership.path(SPARK)}/{query}. "
                    "Its checkpoints are not published: set its checkpointLocation to ha.spark.checkpoint_location("
                    "leadership, name).",
                )
            return False
        metadata = dict(filter(None, (before, self._said.get(query)))).get(batch, NOTHING)
        if self._committed is not None:
            self._committed(query, batch)
        newest = self._published.get(query)
        self._names.committed(query, batch)
        self._ledger.committed(query, batch)
        if newest is not None and (batch < newest[0] or (batch, metadata) == newest):
            return False
        try:
            self._leadership.checkpoints.completed(query, batch, metadata)
        except InvalidName:
            self._published[query] = batch, metadata  # it is not tried again before the next batch
            raise
        self._published[query] = batch, metadata
        return newest is None or batch > newest[0]

    def _warn(self, about: str | None, sentence: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            _log.warning("%s: %s", self._leadership.job, sentence)

    # --- the thread

    def _run(self) -> None:
        try:
            while (names := self._next()) is not None:
                self._after(self.look(*names))
        except NotLeader as error:
            _log.info("%s: publishing of checkpoints ends: %s", self._leadership.job, error)
        except Unreadable as error:
            _log.error("%s: no checkpoints are published: %s", self._leadership.job, error)
        except Exception:  # noqa: BLE001  # the program goes on; its checkpoints are a report
            _log.exception("%s: the publication of checkpoints has failed and stops.", self._leadership.job)
        self.stop()

    def _next(self) -> list[str] | None:
        """Wait for the next look; returns the queries to look at, none of them for all, and None at the end."""
        with self._changed:
            while not (self._stopped or self._closing or self._look_around or self._waiting):
                if not self._changed.wait(self._poll_s or SILENT_S):
                    self._look_around = True
                    self._silent = self._poll_s is None
            if self._stopped:
                return None
            if self._look_around:
                self._look_around = False
                return []
            if self._waiting:
                query = next(iter(self._waiting))
                del self._waiting[query]
                return [query]
            return None

    def _after(self, new: bool | None) -> None:  # what a look has returned
        if new and self._silent:
            self._warn("\0", f"Spark tells of no batch any more: checkpoints are published every {SILENT_S:.0f} s.")
        self._silent = False
        with self._changed:
            if new is None and (self._closing or self._poll_s is None):
                self._look_around = True
                self._changed.wait_for(lambda: self._stopped, RETRY_S)
            elif self._poll_s is not None:
                self._poll_s = SOONEST_S if new else min(LATEST_S, 2 * self._poll_s)


class SidecarPublisher:
    """Publishes for ``ha run --spark`` what a program commits that does not use this package.

    It polls the commit logs during each leadership of the sidecar. The metadata of a batch are not in those logs, so
    they are not in the checkpoints either. Every method may be called at any time.
    """

    def __init__(
        self,
        job: str,
        stores: Stores,
        runtime: Runtime,
        leads: Callable[[], bool],
        committed: Callable[[str, int], object] | None = None,
        file: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._job, self._stores, self._runtime = job, stores, runtime
        self._holder = SidecarHolder(job, leads)
        self._committed, self._file = committed, file
        self._mirror = mirror_of_checkpoints(runtime, job)
        self._leadership: Leadership | None = None
        self._publisher: CheckpointPublisher | None = None

    def begin(self, leader: LeaderDirectory) -> None:
        """Begin to publish, because the sidecar was granted the job; ``ha.lead`` refuses to share this leadership."""
        self.end()
        leadership = Leadership(self._job, leader, self._stores, self._runtime, self._holder, self._mirror)
        publisher = CheckpointPublisher(leadership, poll=True, committed=self._committed, file=self._file)
        leadership.on_revoked(publisher.stop)
        publisher.start()
        self._leadership, self._publisher = leadership, publisher

    def finish(self) -> None:
        """Publish what the program has completed last, because its work is done; takes 5 s at most."""
        if self._publisher is not None:
            self._publisher.close()

    def end(self) -> None:
        """Stop, because the sidecar is about to give the lease back."""
        if self._leadership is not None:
            self._leadership.end()
            self._leadership = self._publisher = None
