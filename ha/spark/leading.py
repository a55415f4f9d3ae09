"""``ha.spark.lead``: leadership as a block of a driver program, with all that follows from it for a Spark session."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any

from pyspark.sql import SparkSession

import ha.leading
from ha.leadership import Leadership
from ha.settings import load
from ha.spark.driver import publish_checkpoints
from ha.spark.explaining import explain
from ha.spark.jvm import Jvm
from ha.spark.location import checkpoint_location
from ha.spark.queries import stop_queries
from ha.spark.task import JOB_PROPERTY
from leader.errors import Fenced, InvalidName, NotLeader
from leader.names import SPARK
from store.errors import StoreError

CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
"""Spark's setting: each query keeps its checkpoint below it, in a directory called like the query."""

JVM_ENDED = 70
"""With which a supervised program ends when its JVM has; ``EX_SOFTWARE`` of sysexits.h."""

_log = logging.getLogger("ha")


class lead:  # noqa: N801  # reads as a verb: with ha.spark.lead("orders", spark) as leadership
    """Contend for a job with a Spark session; the block is entered when leadership is granted.

    Inside it each query that has a ``queryName`` and no ``checkpointLocation`` of its own keeps its checkpoint below
    the leader directory, completed batches are published, and Python workers find the job without being told its name.
    All queries of the session are stopped when the leadership ends, which it also does when the JVM has ended, and when
    the block is left. Under ``ha run`` the leadership is the sidecar's, as with :class:`ha.lead`.
    """

    def __init__(
        self,
        job: str,
        spark: SparkSession,
        endpoints: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        **settings: Any,
    ) -> None:
        """Prepare; nothing is connected before the block is entered.

        Args:
            job: the job's name.
            spark: the session, running: while it is built nobody should wait for a leader.
            endpoints: where this process can be reached, address by name; published when granted.
            timeout: seconds to wait for the grant; None waits for ever.
            settings: as for :func:`ha.connect`.

        Raises:
            InvalidName: the job or an endpoint cannot be called that.
            InvalidSettings: a setting is wrong.
        """
        self._job = job
        self._spark = spark
        self._lead = ha.leading.lead(job, endpoints, timeout=timeout, **settings)
        loaded = load(settings)
        self._stop_margin, self._stop_grace = loaded.timing.stop_margin, loaded.stop_grace
        self._leadership: Leadership | None = None
        self._inside = ExitStack()

    def __enter__(self) -> Leadership:
        """Wait for the grant.

        Raises:
            Invalid: the checkpoint of a stateful query is in a format that is not known here.
            InvalidSettings: the session has no JVM here whose end could be noticed.
            NotLeader: nothing was granted in time, or the JVM has ended meanwhile.
            StoreError: the store did not answer.
        """
        with ExitStack() as stack:
            self._jvm = stack.enter_context(Jvm(self._spark, self._jvm_ended))
            leadership = self._leadership = stack.enter_context(self._lead)
            if not self._jvm.alive:
                raise self._without_jvm()
            _bring_home(leadership)
            stack.enter_context(_configured(self._spark, leadership))
            self._publisher = stack.enter_context(publish_checkpoints(self._spark, leadership))
            leadership.on_revoked(lambda: self._stop_queries(self._stop_margin))
            stack.callback(lambda: self._stop_queries(self._stop_grace))
            self._inside = stack.pop_all()
        return leadership

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the queries, publish what they have completed, and give the leadership back.

        Raises:
            Fenced: the error comes from being fenced; it says by whom.
            NotLeader: there is none, and the leadership was over before the block was left; or the JVM has ended.
        """
        with self._inside:
            reason = self._why_over(error)
        if reason is not None and reason is not error:
            raise reason from error

    def _why_over(self, error: BaseException | None) -> NotLeader | None:
        leadership = self._leadership
        assert leadership is not None, "the block was entered"
        if not self._jvm.alive:
            return self._without_jvm()
        if error is not None:
            return explain(error, leadership)
        if leadership.is_leader():
            return None
        over = f"Epoch {leadership.epoch} of job {self._job!r} was over before the work was, and its queries stopped"
        try:
            return leadership.fenced_by() or NotLeader(f"{over}.")
        except (StoreError, Fenced) as unknown:
            return NotLeader(f"{over}; who leads now is not known: {unknown}")

    def _stop_queries(self, seconds: float) -> None:
        if self._jvm.alive and not stop_queries(self._spark, seconds):
            _log.warning("%s: its queries did not stop within %.1f s; the fence stops them.", self._job, seconds)

    def _jvm_ended(self) -> None:
        _log.error("%s", self._without_jvm())
        if ha.leading.supervised(self._job):
            # Whatever the program waits for is not to come, and its own end may wait for it, too.
            logging.shutdown()
            os._exit(JVM_ENDED)
        if self._leadership is not None:
            self._leadership.resign()

    def _without_jvm(self) -> NotLeader:
        return NotLeader(
            f"The JVM of job {self._job!r}, process {self._jvm.pid}, has ended, and with it the leadership: "
            "start the program again."
        )


def _bring_home(leadership: Leadership) -> None:
    """Have what Spark has noted about the places of its checkpoints follow them: see :mod:`ha.spark.moved`."""
    for query in leadership.names(SPARK):
        with suppress(InvalidName):  # somebody else's
            checkpoint_location(leadership, query)


@contextmanager
def _configured(spark: SparkSession, leadership: Leadership) -> Iterator[None]:
    """Tell the session where checkpoints lie and which job it is; afterwards it is as before."""
    chosen = {CHECKPOINTS: leadership.path(SPARK), JOB_PROPERTY: leadership.job}
    before = {name: spark.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        try:
            for name, old in before.items():
                spark.conf.unset(name) if old is None else spark.conf.set(name, old)
        except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone: then the settings are, too
            _log.debug("The session's settings stay: %s", error)
