"""The declared queries of a job, as ``ha job queries`` and the HTTP API show them: the graph, and the states in it."""

import msgspec

from ha.spark.stored.operator_names import Kept, kept
from ha.spark.supervision.states import Graph, States, read
from ha.views.leases import Leases, steady
from leader.job.admin import JobAdmin


class QueryRow(msgspec.Struct, frozen=True):
    """One query. A new program's queries may have no state yet.

    ``id`` is Spark's, and ``operators`` are the names of those with state, by their numbers; null before a batch.
    """

    query: str
    state: str | None
    region: int
    restarts: int | None
    reads: list[str]
    writes: list[str]
    run_id: str | None
    error: str | None
    id: str | None
    operators: dict[int, str] | None


class Queries(msgspec.Struct, frozen=True):
    """The queries of a job.

    Attributes:
        job: its name.
        epoch: of its newest leadership.
        led: whether anybody holds its lease.
        states_of_epoch: the leadership that wrote these states; null if none was ever written.
        queries: as the program has declared them; none if it has declared none.
    """

    job: str
    epoch: int
    led: bool
    states_of_epoch: int | None
    queries: list[QueryRow]


def queries(admin: JobAdmin, job: str, leases: Leases) -> Queries:
    """Return the declared queries of a job. Unreadable: another version of this package has written them."""
    directory, _, _, lease = steady(lambda: leases.look(admin, job))
    graph, states = read(directory)
    names = kept(directory) if graph is not None else {}
    shown = states.epoch if states is not None else None
    return Queries(job, directory.leader.epoch, lease.held, shown, _rows(graph, states, names))


def _rows(graph: Graph | None, states: States | None, names: Kept) -> list[QueryRow]:
    """Join all by the names of the queries."""
    known = {each.name: each for each in states.queries} if states is not None else {}
    rows = []
    for each in graph.queries if graph is not None else []:
        state, named = known.get(each.name), next(reversed(names.get(each.name, ())), None)
        rows.append(
            QueryRow(
                each.name,
                state.state.value if state else None,
                each.region,
                state.restarts if state else None,
                each.reads,
                each.writes,
                (state.run_id or None) if state else None,
                (state.error or None) if state else None,
                named.id if named else None,
                named.operators if named else None,
            )
        )
    return rows
