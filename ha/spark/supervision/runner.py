"""Runner: executes the supervisor's commands with a Spark session, and tells it what Spark says.

One thread, the caller's, takes events from a queue and waits for nothing else. The queries of a region are started by a
thread of the region, and each query is stopped by one of its own, so a region that hangs holds up no other.
"""

import logging
import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ha.leadership.leadership import Leadership
from ha.program.request_file import Tell
from ha.spark.queries.query_failures import FORGOTTEN, Failure, failure
from ha.spark.queries.query_reports import QueryEnded
from ha.spark.session.reattaching import since_start
from ha.spark.session.spark_session import explain
from ha.spark.supervision.batch_watch import BatchWatch
from ha.spark.supervision.states import StatesWriter
from ha.spark.supervision.supervisor import Command, QueryEnd, Start, StopQuery, Supervisor
from leader.errors import Fenced, QueryFailed
from leader.job.request_folder import State
from store.clock import now

AUDIT_S = 10.0
"""Longest pause between two looks at the queries themselves: Spark's bus may drop an event when it is full."""

AGAIN_S = 1.0  # after which what could not get a thread is tried again

_log = logging.getLogger("ha")

Event = Callable[[], list[Command]]


@dataclass(frozen=True, slots=True)
class _Restart:
    """A restart that an operator waits for: of this query's region, after that start of it."""

    query: str
    before: int
    tell: Tell


class Runner:
    """Runs one job's queries under one leadership."""

    def __init__(
        self,
        leadership: Leadership,
        starters: Mapping[str, Callable[[], Any]],
        supervisor: Supervisor,
        states: StatesWriter,
        batch_timeout: float = 0.0,
        settings: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        # `starters` return the writer of a query, not started. A batch may take `batch_timeout` seconds; 0 for ever.
        # `settings` makes the session's settings for a query that is built and started in the block.
        self._starting = threading.Lock()
        self._settings = settings
        self._leadership, self._starters, self._supervisor, self._states = leadership, starters, supervisor, states
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._runs: dict[str, tuple[str, int, StreamingQuery]] = {}
        """By run id: name of the query, attempt, and the query itself."""
        self._inactive: set[str] = set()
        self._batches = BatchWatch(batch_timeout) if batch_timeout else None
        self._looks: set[str] = set()  # run ids of the queries that a thread asks for their batch
        self.fenced: Fenced | None = None  # the reason for a query's failure, if another leader has taken over
        self._restarts: list[_Restart] = []
        self._put_off: list[Command] = []  # no thread could be had for them
        self._over = threading.Event()
        self._reattached: dict[str, StreamingQuery] = {}

    def reattach(self, queries: Mapping[str, StreamingQuery]) -> None:
        """Take these queries, by name, for those that the first start would start."""
        self._reattached = {name: query for name, query in queries.items() if name in self._starters}

    @property
    def stuck(self) -> bool:
        """Whether the program ends because a query does not stop."""
        return self._supervisor.stuck

    @property
    def running(self) -> dict[str, StreamingQuery]:
        """The queries that have been started and have not ended, by name; for the thread of :meth:`run`."""
        return {name: query for name, _, query in self._runs.values()}

    def tell(self, ended: QueryEnded) -> None:
        """Report the end of a query; returns at once."""
        self._events.put(lambda: self._ended(ended.run_id, ended.error))

    def restart(self, query: str, tell: Tell) -> None:
        """Start a query again, with its region; returns at once. ``tell`` is called on the thread of :meth:`run`."""
        self._events.put(lambda: self._restart(query, tell))

    def end(self) -> None:
        """Have :meth:`run` return: nothing is started any more, and the leading block stops the queries."""
        self._over.set()
        self._events.put(None)

    def run(self) -> Failure | None:
        """Run until the job has finished, a failure is left to the caller, or :meth:`end` was called."""
        commands = self._supervisor.begin()
        audit = now() + AUDIT_S
        looked = now()
        failing = False
        try:
            while True:
                for command in commands:
                    if isinstance(command, QueryEnd):
                        failing = command.failure is not None
                        return command.failure
                    self._execute(command)
                self._states.show(self._supervisor.queries.values())
                due = min(audit, self._next_look(looked), self._supervisor.due() or audit)
                if self._put_off:
                    due = min(due, now() + AGAIN_S)
                commands = []
                with suppress(queue.Empty):
                    event = self._events.get(timeout=max(0.0, due - now()))
                    if event is None:
                        return None
                    commands = event()
                if now() >= audit:
                    audit = now() + AUDIT_S
                    self._audit()
                if now() >= self._next_look(looked):
                    looked = now()
                    self._look_at_batches()
                commands += self._supervisor.tick(now())
                commands, self._put_off = self._put_off + commands, []
                self._tell_of_restarts()
        finally:
            self._over.set()
            self._tell_of_restarts()
            self._states.show(self._supervisor.queries.values(), failing=failing)

    # --- commands

    def _execute(self, command: Command) -> None:
        if isinstance(command, Start):
            again = " again" if command.attempt > 1 else ""
            _log.info("%s: starting %s%s.", self._leadership.job, ", ".join(command.queries), again)
        work: Callable[..., None] = self._start_all if isinstance(command, Start) else self._stop
        try:
            threading.Thread(target=work, args=(command,), name="ha-query", daemon=True).start()
        except RuntimeError as error:
            _log.warning("%s: %s: tried again in %g s.", self._leadership.job, error, AGAIN_S)
            self._put_off.append(command)

    def _start_all(self, command: Start) -> None:
        """Start the queries of a region in order; after one that cannot be started, none of the others."""
        failed = False
        for name in command.queries:
            try:
                if failed or self._over.is_set():
                    self._answer(name, command.attempt, None)
                else:
                    self._start(name, command.attempt)
            except Exception as error:  # noqa: BLE001  # of the program's function, of Spark or py4j
                failed = True
                text = "".join(traceback.format_exception(error))
                self._answer(name, command.attempt, failure(name, text), text)

    def _start(self, name: str, attempt: int) -> None:
        if (running := self._reattached.pop(name, None)) is not None:
            said = "%s: %s runs, and is reattached %.2f s after the program's start."
            _log.info(said, self._leadership.job, name, since_start())
            self._events.put(partial(self._started, name, attempt, str(running.runId), running))
            return
        # A session is shared, and Spark takes its settings when sources are read, and when a query starts.
        with self._starting, self._settings(name):
            writer = self._starters[name]()
            if isinstance(writer, StreamingQuery):
                writer.stop()
            if not isinstance(writer, DataStreamWriter):
                kind = type(writer).__name__
                raise TypeError(f"Its function has returned {kind}: return the writer of the stream, without start().")
            query = writer.queryName(name).start()
        self._events.put(partial(self._started, name, attempt, str(query.runId), query))
        if self._over.is_set():
            query.stop()  # the leading block may have stopped all queries before this one was there

    def _stop(self, command: StopQuery) -> None:
        for name, attempt, query in list(self._runs.values()):
            if (name, attempt) == (command.query, command.attempt):
                try:
                    query.stop()
                except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone; the supervisor has a deadline
                    _log.debug("%s could not be stopped: %s", name, error)

    # --- events, on the runner's thread

    def _answer(self, name: str, attempt: int, failed: Failure | None, trace: str = "") -> None:
        def event() -> list[Command]:
            if failed is not None:
                self._say(failed, trace)
            return self._supervisor.ended(name, attempt, failed, now())

        self._events.put(event)

    def _started(self, name: str, attempt: int, run_id: str, query: StreamingQuery) -> list[Command]:
        self._runs[run_id] = name, attempt, query
        return self._supervisor.started(name, attempt, run_id)

    def _ended(self, run_id: str, error: str | None) -> list[Command]:
        name, attempt, _ = self._runs.pop(run_id, ("", 0, None))
        if not name:
            return []  # a query of the program's own
        failed = self._read(name, error) if error is not None else None
        if failed is not None and error is not None:
            self._say(failed, error)
            if FORGOTTEN in error:
                return [QueryEnd(failed)]
        return self._supervisor.ended(name, attempt, failed, now())

    def _restart(self, query: str, tell: Tell) -> list[Command]:
        if query not in self._supervisor.queries:
            tell(State.REFUSED, f"It has no query {query!r}: it has {', '.join(self._supervisor.queries)}.")
            return []
        names, before = self._supervisor.region(query)
        _log.info("%s: an operator has %s started again.", self._leadership.job, ", ".join(names))
        tell(State.ACCEPTED, f"Stopped, and then started again: {', '.join(names)}.")
        self._restarts.append(_Restart(query, before, tell))
        return self._supervisor.restart(query, now())

    def _tell_of_restarts(self) -> None:
        for each in [*self._restarts]:
            outcome = self._supervisor.restarted(each.query, each.before)
            if isinstance(outcome, Failure):
                each.tell(State.FAILED, f"A query has failed again. {outcome}")
            elif outcome:
                names, _ = self._supervisor.region(each.query)
                each.tell(State.DONE, f"Started again: {', '.join(names)}.")
            else:
                continue
            self._restarts.remove(each)

    def _read(self, name: str, error: str) -> Failure:
        reason = explain(RuntimeError(error), self._leadership)
        if isinstance(reason, Fenced):
            self.fenced = reason
            return failure(name, str(reason), "another leader has taken over")
        return failure(name, error)

    def _say(self, failed: Failure, trace: str) -> None:
        _log.error("%s: a query has failed. %s", self._leadership.job, failed)
        self._leadership.keep_failure(QueryFailed.__name__, f"{failed}", query=failed.query, trace=trace)

    def _audit(self) -> None:
        """Find queries whose end was not told: those that were not active twice."""
        gone = {run_id for run_id, (_, _, query) in self._runs.items() if not query.isActive}
        for run_id in gone & self._inactive:
            error = self._runs[run_id][2].exception()
            self.tell(QueryEnded(None, run_id, None if error is None else f"{error}"))
        self._inactive = gone

    def _next_look(self, looked: float) -> float:
        """Return the time of the next look at the batches, after one at ``looked``."""
        return self._batches.next_look(looked, answered=not self._looks) if self._batches is not None else float("inf")

    def _look_at_batches(self) -> None:
        """Ask each query for its batch, on threads: a JVM that does not answer holds up nothing here."""
        assert self._batches is not None, "only then there are looks"
        self._batches.forget(self._runs)
        for run_id, (_, _, query) in self._runs.items():
            if run_id not in self._looks:
                with suppress(RuntimeError):  # no thread can be had: the next look tries again
                    asks = partial(self._ask_for_batch, run_id, query)
                    threading.Thread(target=asks, name="ha-batch", daemon=True).start()
                    self._looks.add(run_id)

    def _ask_for_batch(self, run_id: str, query: StreamingQuery) -> None:
        try:
            status = query.status
            works = bool(status["isTriggerActive"] and status["isDataAvailable"])
            progress = query.lastProgress if works else None
            batch = progress["batchId"] if progress else None
        except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone
            _log.debug("A query does not tell its batch: %s", error)
            works, batch = False, None
        self._events.put(lambda: self._batch(run_id, batch, works=works))

    def _batch(self, run_id: str, before: int | None, *, works: bool) -> list[Command]:
        assert self._batches is not None, "only then there are looks"
        self._looks.discard(run_id)
        name, attempt, _ = self._runs.get(run_id, ("", 0, None))
        if not name or not self._batches.overdue(run_id, before, now(), works=works):
            return []
        after = "the start" if before is None else before
        failed = Failure(name, f"its batch after {after} takes more than {self._batches.timeout:g} s")
        self._say(failed, "")
        return self._supervisor.overdue(name, attempt, failed, now(), completed=before is not None)
