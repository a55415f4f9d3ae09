"""``ha.spark.lead``: leadership as a block of a driver program, with everything that its Spark session needs."""

import logging
import os
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import ha.leadership.lead
from ha.config.sources import load
from ha.hook.guarding import LOCATION, Guard, guarded
from ha.leadership.leadership import Leadership
from ha.program.end_file import End
from ha.program.exit_codes import JVM_ENDED
from ha.program.heartbeat import Heartbeat
from ha.program.query_report import read as read_reports
from ha.spark.queries.query_events import publish_checkpoints
from ha.spark.queries.query_failures import FORGOTTEN, QueryEnds, failure
from ha.spark.queries.query_reports import QueryEnded, QueryReports, ReportFile
from ha.spark.rewind.completing import settle
from ha.spark.session.frozen import for_session, warn_of_frozen
from ha.spark.session.reattaching import attached, reconcile, reconciled
from ha.spark.session.spark_session import Jvm, configured, explain, scratch_kept, stop_queries
from ha.spark.session.spark_settings import for_retained
from ha.spark.stored.locations import checkpoint_location
from ha.spark.tasks.task import JOB_PROPERTY
from leader.errors import Fenced, InvalidName, InvalidSettings, NotLeader, QueryFailed
from leader.layout.names import SPARK
from store.errors import StoreError

REHEARSES = "ha-rehearsal"  # thread whose queries begin also between two leaderships: nobody reads what they write
EVENTS_S = 3.0  # longest wait, when a block is left, for Spark's events about queries that have ended

_log = logging.getLogger("ha")


class lead:  # noqa: N801  # reads as a verb: with ha.spark.lead("orders", spark) as leadership
    """Lead a job with a Spark session: the block is entered once leadership is granted.

    Inside the block:

    - a query with a ``queryName`` and no ``checkpointLocation`` of its own keeps its checkpoint below the leader
      directory;
    - completed batches are published as checkpoints of the job;
    - Python workers find the job without its name.

    A query that ends with an error is logged and kept among the job's exceptions, and the others go on. If it is not
    started again, the block raises an error when it is left, also if the program has caught the query's own. To end
    with the first query that fails, wait with ``spark.streams.awaitAnyTermination()``.
    All queries are stopped when Spark calls a function that the program has lost, because only a new program has it.

    When the leadership ends, all queries of the JVM are stopped, those of other sessions too, and none is started any
    more, in the block or after it, until this process leads again: that raises ``NotLeader``. It also ends when the JVM
    has ended, and when the block is left.
    Under ``ha run`` the block shares the leadership of the sidecar, as with :class:`ha.lead`.
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
            job: name of the job.
            spark: the session. Build it before, so that the job does not wait for it without a leader.
            endpoints: addresses of this process, by name; published with the grant.
            timeout: seconds to wait for the grant; None waits for ever.
            settings: as for :func:`ha.connect`.

        Raises:
            InvalidName: the job or an endpoint cannot have that name.
            InvalidSettings: a setting is wrong.
        """
        self._job = job
        self._spark = spark
        self._lead = ha.leadership.lead.lead(job, endpoints, timeout=timeout, **settings)
        loaded = load(settings)
        self._stop_margin, self._stop_grace = loaded.leadership.timing.stop_margin, loaded.command.stop_grace
        self._query_ended: Callable[[QueryEnded], object] = self._report
        self._supervises = False
        self._ends = QueryEnds()
        self.remedy = ""  # what mends the error of the block, if no restart does; for `ha.spark.Job`, which may know it
        self._kept: set[str] = set()
        """Run ids of the queries whose failures are among the job's exceptions; an error that names one is the same."""
        self._heartbeat_timeout = loaded.command.heartbeat_timeout
        self._published = loaded.command.checkpoints_retained
        self._leadership: Leadership | None = None
        self.reports: QueryReports | None = None
        """For the sidecar's metrics; None before the block, and without a sidecar."""
        self._over = threading.Event()
        """Set at the end of the leadership, before the queries are stopped."""
        self._inside = ExitStack()

    def watch(self, ended: Callable[[QueryEnded], object]) -> None:
        """Have the ends of queries told to this function instead of logging them. Call it before the block.

        Who calls it also says when the queries of a program that has died are reattached, and the job is RUNNING again.

        Args:
            ended: Spark waits for it, so it must return at once.
        """
        self._query_ended, self._supervises = ended, True

    def __enter__(self) -> Leadership:
        """Wait for the grant, and return the leadership.

        Raises:
            Invalid: this version does not know the format of a stateful query's checkpoint.
            InvalidSettings: the session has no JVM on this host.
            NotLeader: the job was not granted in time, or the JVM has ended meanwhile.
            StoreError: the store did not answer.
        """
        with ExitStack() as stack:
            self._jvm = stack.enter_context(Jvm(self._spark, self._jvm_ended))
            with scratch_kept(self._spark):
                leadership = self._leadership = stack.enter_context(self._lead)
            if not self._jvm.alive:
                raise self._without_jvm()
            if (path := self._shared("HA_HEARTBEAT")) is not None:
                stack.enter_context(Heartbeat(path, self._heartbeat_timeout, self._jvm.pid, self._jvm.answer))
            if attached():
                reconcile(leadership)
            if not self._spark.streams.active:  # else the program that has started them has done so
                _relocate_checkpoints(leadership)
            chosen = {LOCATION: leadership.path(SPARK), JOB_PROPERTY: leadership.job}
            chosen |= for_retained(self._spark, leadership.job, self._published)
            stack.enter_context(configured(self._spark, {**chosen, **for_session(self._spark, leadership)}))
            warn_of_frozen(self._spark, leadership, each_query=self._supervises)
            if (path := self._shared("HA_QUERIES")) is not None:
                self.reports = QueryReports()
                if attached():
                    self.reports.resume(read_reports(path))
                stack.enter_context(ReportFile(path, self.reports))
            publisher = publish_checkpoints(self._spark, leadership, self._query_ended, self.reports, self._ends)
            tell = stack.enter_context(publisher).tell_unguarded
            teach = cache(partial(_register_format, leadership))
            stack.enter_context(guarded(Guard(leadership.path(SPARK), tell, InvalidSettings, self._check, teach=teach)))
            leadership.on_revoked(lambda: self._end_all(self._stop_margin))
            stack.callback(lambda: self._end_all(self._stop_grace))
            if attached() and not self._supervises:
                reconciled(leadership)
            self._inside = stack.pop_all()
        return leadership

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the queries, publish what they have completed, and give the leadership back.

        Raises:
            Fenced: another leader has taken over, which explains the error of the block, if there is one.
            NotLeader: the leadership was over before the block was left, or the JVM has ended.
            QueryFailed: a query has failed and was not started again.
        """
        with self._inside:
            reason = self._why_over(error)
            if isinstance(error, Exception) and reason is None and not any(each in str(error) for each in self._kept):
                self._keep(error)
            self._lead.end = self._end(reason or error)
        if reason is not None and reason is not error:
            raise reason from error

    def _shared(self, variable: str) -> Path | None:
        """Return a file that the sidecar shares with its program, by the variable that names it; None without one."""
        path = os.environ.get(variable)
        return Path(path) if path and ha.leadership.lead.supervised(self._job) else None

    def _keep(self, error: Exception) -> None:
        assert self._leadership is not None, "the block was entered"
        trace = "".join(traceback.format_exception(error))
        self._leadership.keep_failure(type(error).__name__, str(error), trace=trace)

    def _end(self, error: BaseException | None) -> End:
        if ha.leadership.lead.failed(error):
            found = failure("", f"{error}", failure("", type(error).__name__).remedy)
            remedy = self.remedy or found.remedy or (self._ends.failed.remedy if self._ends.failed is not None else "")
            return End(f"{type(error).__name__}: {found.error}", remedy)
        unfinished = self._ends.unfinished(self._active())
        said = f"it left its block of ha.spark.lead, and {unfinished}; it calls leadership.finish() if that is meant"
        return End(said if unfinished else "")

    def _active(self) -> set[str]:
        try:
            return {str(query.runId) for query in self._spark.streams.active}
        except Exception as error:  # noqa: BLE001  # py4j's; none is if the program has stopped its session
            _log.debug("Spark does not say which queries are active: %s", error)
            return set()

    def _why_over(self, error: BaseException | None) -> NotLeader | QueryFailed | None:
        leadership = self._leadership
        assert leadership is not None, "the block was entered"
        if not self._jvm.alive:
            return self._without_jvm()
        self._ends.settle(self._active(), EVENTS_S)
        stopped = self._over.is_set() and isinstance(error, StreamingQueryException)  # in the middle of a batch
        if error is not None and ha.leadership.lead.failed(error):
            reason = explain(error, leadership)
            if reason is not None or not stopped:
                return reason
        if leadership.is_leader():
            failed = None if leadership.finished else self._ends.failed
            return None if failed is None else QueryFailed(f"A query of job {self._job!r} has failed. {failed}")
        over = f"Epoch {leadership.epoch} of job {self._job!r} was over before the work was, and its queries stopped"
        try:
            return leadership.fenced_by() or NotLeader(f"{over}.")
        except (StoreError, Fenced) as unknown:
            return NotLeader(f"{over}; who leads now is not known: {unknown}")

    def _report(self, ended: QueryEnded) -> None:
        if ended.error is None or self._leadership is None or not self._leadership.is_leader():
            return
        found = failure(str(ended.name), ended.error)
        failed = QueryFailed(f"A query of job {self._job!r} has failed. {found}")
        _log.error("%s", failed)
        self._kept.add(ended.run_id)
        self._leadership.keep_failure(QueryFailed.__name__, f"{failed}", query=ended.name or "", trace=ended.error)
        if FORGOTTEN in ended.error:
            threading.Thread(target=self._stop_queries, args=(self._stop_grace,), name="ha-stop", daemon=True).start()

    def _check(self) -> None:
        if self._over.is_set() and threading.current_thread().name != REHEARSES:
            assert self._leadership is not None, "the block was entered"
            said = f"Epoch {self._leadership.epoch} of job {self._job!r} is over, so this query is not started: "
            raise NotLeader(f"{said}leave the block of ha.spark.lead, and lead again.")

    def _end_all(self, seconds: float) -> None:
        self._over.set()  # a program may start its queries again as soon as they are stopped
        self._stop_queries(seconds)

    def _stop_queries(self, seconds: float) -> None:
        if self._jvm.alive and not stop_queries(self._spark, seconds):
            _log.warning("%s: its queries did not stop within %.1f s; the fence stops them.", self._job, seconds)

    def _jvm_ended(self) -> None:
        _log.error("%s", self._without_jvm())
        if ha.leadership.lead.supervised(self._job):
            # The program may wait for ever for its dead JVM, even while it ends.
            logging.shutdown()
            os._exit(JVM_ENDED)
        if self._leadership is not None:
            self._leadership.resign()

    def _without_jvm(self) -> NotLeader:
        return NotLeader(
            f"The JVM of job {self._job!r}, process {self._jvm.pid}, has ended, and with it the leadership: "
            "start the program again."
        )


def _register_format(leadership: Leadership, spark: SparkSession) -> None:
    # Half a second: Spark starts a Python process, which looks for formats. So only a query that writes with it waits.
    if hasattr(spark, "dataSource"):
        from ha.spark.sink.data_source import register_format  # noqa: PLC0415  # PySpark 3.5 lacks its base class

        register_format(spark, leadership)


def _relocate_checkpoints(leadership: Leadership) -> None:
    """Correct the paths that Spark has noted in its checkpoints: see :mod:`ha.spark.stored.locations`."""
    settle(leadership)
    for query in leadership.names(SPARK):
        with suppress(InvalidName):  # a file of another program
            checkpoint_location(leadership, query)
