"""Job: a program's queries as functions that can be called again, and ``run``, which supervises them."""

import functools
import logging
import os
import random
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from ha.config.command_settings import STAY
from ha.config.sources import load
from ha.leadership.lead import supervised
from ha.leadership.leadership import Leadership
from ha.program import end_file
from ha.program.end_file import End
from ha.program.exit_codes import QUERY_STUCK
from ha.program.request_file import program_watch
from ha.spark.driver.lead_session import lead
from ha.spark.queries.query_failures import Failure
from ha.spark.queries.query_reports import QueryEnded
from ha.spark.session.frozen import check_supported, for_query
from ha.spark.session.private_names import activate
from ha.spark.session.reattaching import attached, running_queries
from ha.spark.supervision.flow import Flow, regions
from ha.spark.supervision.runner import Runner
from ha.spark.supervision.settling import settle, settle_watch
from ha.spark.supervision.states import Graph, GraphQuery, StatesWriter
from ha.spark.supervision.supervisor import Supervisor
from leader.errors import InvalidName, InvalidSettings, QueryFailed
from leader.layout.names import check_job, check_word

_log = logging.getLogger("ha")

Function = TypeVar("Function", bound=Callable[[SparkSession, Leadership], Any])


class Job:
    """A job whose queries are declared, so that each of them can be started again.

    A query that fails is started again, together with the queries of its region: those that it is connected with by
    what they read and write. The queries of other regions go on. See ``docs/jobs.md``.
    """

    def __init__(self, name: str, *, named_sources: bool = False, **settings: Any) -> None:
        """Declare a job without queries; nothing is connected before :meth:`run`.

        Args:
            name: of the job.
            named_sources: whether the sources of new queries have names, which :func:`ha.spark.named_source` gives.
                So sources can be added, removed and moved later. A query with a checkpoint stays as it was begun.
            settings: as for :func:`ha.connect`.

        Raises:
            InvalidName: the job cannot have that name.
            InvalidSettings: a setting is wrong.
        """
        self.name = check_job(name)
        self._named_sources = named_sources
        self._arguments = settings
        self._settings = load(settings)
        self._functions: dict[str, Callable[[SparkSession, Leadership], Any]] = {}
        self._flows: list[Flow] = []

    def query(
        self, *, reads: Iterable[str] = (), writes: Iterable[str] = (), name: str = ""
    ) -> Callable[[Function], Function]:
        """Declare a query: decorates a function of session and leadership that returns its writer, not started.

        The function is called at each start of the query, and never at the same time as that of another query. The
        query gets the name of the declaration, and its checkpoint is below the leader directory.

        Args:
            reads: names of what the query reads. They can be any text, such as a path or ``kafka:orders``.
            writes: names of what it writes. A query that reads what another one writes is in its region.
            name: of the query; default: the function's.

        Raises:
            InvalidName: the query cannot have that name, or another one has it.
        """

        def declare(function: Function) -> Function:
            query = check_word(name or function.__name__, "a query")
            if query in self._functions:
                raise InvalidName(f"Job {self.name!r} has two queries {query!r}: give one of them another name.")
            self._flows.append(Flow(query, _names(reads, query), _names(writes, query)))
            self._functions[query] = function
            return function

        return declare

    def run(
        self,
        spark: SparkSession | None = None,
        endpoints: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Lead, start all queries, and supervise them until all have ended without an error.

        A program that calls this on its main thread ends its queries in order when it gets SIGTERM. If a query does not
        stop, it might hold up the program's own end: under ``ha run`` the process then ends here, with code 75.

        Args:
            spark: the session; default: the one that ``SparkSession.builder`` gives.
            endpoints: as for :class:`ha.spark.lead`.
            timeout: seconds to wait for the grant; None waits for ever.

        Raises:
            Fenced: another leader has taken over.
            InvalidSettings: the job has no queries, the session has no JVM on this host, or no names for sources.
            NotLeader: the leadership was over before the work was.
            QueryFailed: a region was given up; the message says which query failed, and why.
        """
        if not self._functions:
            raise InvalidSettings(f"Job {self.name!r} has no queries: declare one with @job.query().")
        session = spark or SparkSession.builder.appName(self.name).getOrCreate()  # before, so that no leader waits
        if self._named_sources:
            check_supported(session)
        over: list[Callable[[], object]] = []
        leading = lead(self.name, session, endpoints, timeout=timeout, **self._arguments)
        told: list[Callable[[QueryEnded], object]] = []
        leading.watch(lambda ended: [each(ended) for each in told])
        with _terminated(over), leading as leadership:
            states = StatesWriter(leadership, self.graph, leading.reports, reconciling=attached())
            runner = self._runner(session, leadership, states)
            told.append(runner.tell)
            over.append(runner.end)
            if attached():
                runner.reattach(running_queries(session))
            leadership.on_revoked(runner.end)
            states.start()
            try:
                failed = self._supervise(runner, leadership)
            finally:
                states.close()
            if runner.fenced is not None:
                raise runner.fenced
            if failed is not None:
                error = QueryFailed(f"Job {self.name!r} ends, because a query has failed. {failed}")
                leading.remedy = failed.remedy
                if runner.stuck and supervised(self.name):
                    end_file.tell(End(f"{error}", failed.remedy))
                    _log.error("%s The program is ended with code %d.", error, QUERY_STUCK)
                    logging.shutdown()
                    os._exit(QUERY_STUCK)  # the other queries end with the JVM; the sidecar's guard sees to that
                raise error

    def _supervise(self, runner: Runner, leadership: Leadership) -> Failure | None:
        """Run until the end; if the sidecar asks for it, let the queries end in order, then end the process."""
        path, restarts = Path(os.environ.get("HA_SETTLE", "")), Path(os.environ.get("HA_RESTART", ""))
        if not supervised(self.name) or not path.name or not restarts.name:
            return runner.run()
        with settle_watch(path, runner.end), program_watch(restarts, runner.restart):
            failed = runner.run()
            if (
                failed is None
                and leadership.is_leader()
                and settle(path, leadership, runner.running, self.graph.queries)
            ):
                os.kill(os.getpid(), signal.SIGTERM)  # which :func:`_terminated` heeds after the block
        return failed

    @property
    def graph(self) -> Graph:
        """The declared queries, and their regions."""
        region_of = {query: number for number, region in enumerate(regions(self._flows)) for query in region}
        return Graph([GraphQuery(each.name, each.reads, each.writes, region_of[each.name]) for each in self._flows])

    def _runner(self, spark: SparkSession, leadership: Leadership, states: StatesWriter) -> Runner:
        supervisor = Supervisor(
            regions(self._flows),
            lambda: self._settings.command.restarts(random.random, "exponential-delay"),
            self._settings.command.stop_grace,
            keep_others=self._settings.queries.failed_region == STAY,
            tolerated=self._settings.queries.late_batches_tolerated,
        )

        def writer(function: Callable[[SparkSession, Leadership], Any]) -> Any:
            activate(spark)
            return function(spark, leadership)

        starters = {name: functools.partial(writer, function) for name, function in self._functions.items()}

        settings = functools.partial(for_query, spark, leadership, wanted=self._named_sources)
        return Runner(leadership, starters, supervisor, states, self._settings.queries.batch_deadline, settings)


@contextmanager
def _terminated(callbacks: list[Callable[[], object]]) -> Iterator[None]:
    """Have SIGTERM call back, and end the process as it would have, but after the block."""
    # As long as there are no callbacks, because nothing has been started, it ends the process at once. Nothing changes
    # on another thread than the main one, or if the program handles the signal itself.
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    received = threading.Event()

    def handle(_: int, __: object) -> None:
        received.set()
        for each in callbacks:
            each()
        if not callbacks:
            die()

    def die() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if received.is_set():
            die()


def _names(given: Iterable[str], query: str) -> list[str]:
    if isinstance(given, str):
        raise InvalidName(f"Query {query!r} declares the text {given!r}: give a list of names, such as [{given!r}].")
    return list(given)
