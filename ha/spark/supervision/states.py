"""The graph of a job and the states of its queries, as files of the leader directory that any host can read.

The job's own state follows from theirs: RESTARTING while a query waits for its restart, FAILING while the others are
stopped because one has failed for good. Any other state of the job has another owner, and stays.

Both are written when they change and never otherwise, by a thread of their own: a store that is slow or away holds up
no restart. Of several changes meanwhile the last one is written. See decision 39.
"""

import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

import msgspec

from ha.leadership.leadership import Leadership
from ha.spark.queries.query_reports import QueryReports
from ha.spark.stored.operator_names import graph_files
from ha.spark.supervision.flow import Flow
from ha.spark.supervision.supervisor import Query, QueryState
from leader.errors import NotLeader, Unreadable
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import Status
from leader.job.versioned_files import VersionedFile, graph_of
from store.errors import Conflict, Invalid, StoreError

T = TypeVar("T")

RETRY_S = 0.5  # pause before the next try when the store did not answer
CLOSE_TIMEOUT_S = 5.0  # longest time that closing waits for the last states to be written

_STATES = "queries"

_OURS = (Status.RUNNING, Status.RESTARTING, Status.RECONCILING)
"""States of the job that follow from those of its queries; any other one is somebody else's."""

_log = logging.getLogger("ha")


class GraphQuery(Flow, frozen=True):
    """A query in the job's graph; ``region`` is the number of its region, from 0."""

    region: int


class Graph(msgspec.Struct, frozen=True):
    """The graph of a job's queries: what they read and write, and which of them restart together."""

    queries: list[GraphQuery]


class ShownQuery(msgspec.Struct, frozen=True):
    """The state of a query; see :class:`ha.spark.supervision.supervisor.Query`."""

    name: str
    state: QueryState
    restarts: int
    error: str
    run_id: str


class States(msgspec.Struct, frozen=True):
    """The states of a job's queries under one leadership."""

    epoch: int
    queries: list[ShownQuery]


def read(directory: FencedDirectory) -> tuple[Graph | None, States | None]:
    """Return a job's graph and the states of its queries; None for what was never written."""
    # Raises `Unreadable` if another version of this package has written one of them.
    states = VersionedFile(graph_files(directory), _STATES)
    return _decoded(graph_of(directory), Graph), _decoded(states, States)


class StatesWriter:
    """Writes the graph once, if it has changed, and the states whenever they change; until closed or fenced."""

    def __init__(
        self, leadership: Leadership, graph: Graph, reports: QueryReports | None = None, *, reconciling: bool = False
    ) -> None:
        """Write nothing yet; with ``reconciling`` the job is RECONCILING, until no query is STARTING any more."""
        self._reports = reports
        self._reconciling = reconciling
        self._leadership = leadership
        self._graph: bytes | None = msgspec.json.encode(graph)
        self._shown = b""
        self._status = self._written_status = Status.RECONCILING if reconciling else Status.RUNNING
        self._wanted: bytes | None = None
        self._closing = self._writing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ha-queries", daemon=True)
        leadership.on_revoked(self._revoked)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def show(self, queries: Iterable[Query], *, failing: bool = False) -> None:
        """Have these states written, if they are others than before; ``failing`` ends the program. Returns at once."""
        states = [ShownQuery(each.name, each.state, each.restarts, each.error, each.run_id) for each in queries]
        waits = any(each.state is QueryState.RESTARTING for each in states)
        self._reconciling = self._reconciling and any(each.state is QueryState.STARTING for each in states)
        if self._reports is not None:
            for each in states:
                self._reports.shows(each.name, each.state)
        data = msgspec.json.encode(States(self._leadership.epoch, states))
        with self._changed:
            present = Status.RECONCILING if self._reconciling else Status.RUNNING
            status = Status.FAILING if failing else Status.RESTARTING if waits else present
            if data != self._shown or status is not self._status:
                self._shown = self._wanted = data
                self._status = status
                self._changed.notify_all()

    def close(self) -> None:
        """Write what was shown last, and stop; takes 5 s at most."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _revoked(self) -> None:
        with self._changed:
            self._closing, self._wanted, self._graph = True, None, None
            self._changed.notify_all()

    def _run(self) -> None:
        failing = False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._graph or self._wanted)
                graph, wanted = self._graph, self._wanted
            if graph is None and wanted is None:
                return
            try:
                self._write(graph, wanted)
                failing = False
            except NotLeader:
                return  # the states are the next leader's
            except Invalid as error:
                _log.warning("%s: `ha job queries` does not show its queries: %s", self._leadership.job, error)
                return
            except StoreError as error:
                if not failing:
                    _log.warning("%s: the states of its queries are written later: %s", self._leadership.job, error)
                failing = True
                with self._changed:
                    if self._changed.wait_for(lambda: self._closing, RETRY_S):
                        return

    def _write(self, graph: bytes | None, wanted: bytes | None) -> None:
        if graph is not None:
            self._put_graph(graph)
            with self._changed:
                self._graph = None
        if wanted is not None:
            graph_files(self._leadership.own).put(_STATES, wanted)
            self._change_status()
            with self._changed:
                if self._wanted is wanted:
                    self._wanted = None

    def _change_status(self) -> None:
        with self._changed:
            wanted = self._status
        if wanted is self._written_status:
            return
        status = self._leadership.status
        with suppress(Conflict):  # the sidecar has changed it meanwhile: it knows better
            if (found := status.read()) in _OURS and found is not wanted:
                status.change(found, wanted)
        self._written_status = wanted

    def _put_graph(self, graph: bytes) -> None:
        found = self._leadership.graph.load()
        if found is None or found.data != graph:
            with suppress(Conflict):  # after an unknown outcome it is this one, because only the leader writes it
                self._leadership.graph.put(graph, found.version if found else 0)


def _decoded(file: VersionedFile, kind: type[T]) -> T | None:
    found = file.load()
    try:
        return msgspec.json.decode(found.data, type=kind) if found is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(
            f"Version {found.version if found else 0} of the job's {kind.__name__.lower()} cannot be read, because "
            f"another version of this package or a program has written it: {error}."
        ) from error
