"""Flow: which queries read the results of others; the order and the regions that follow from it. Pure."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

from store.errors import Invalid


class Edges(Protocol):
    """The declared sources and destinations of a query."""

    @property
    def reads(self) -> Iterable[str]:
        """Names of what it reads."""

    @property
    def writes(self) -> Iterable[str]:
        """Names of what it writes."""


class Flow(Edges, Protocol):
    """The same of a query with a name."""

    @property
    def name(self) -> str:
        """Name of the query."""


def readers_first(queries: Iterable[str], graph: Iterable[Flow]) -> list[str]:
    """Return the queries, each reader before its sources; raises ``Invalid`` if some read each other's output."""
    names, read_by = sorted(queries), readers(graph)
    sorter = TopologicalSorter({name: sorted(read_by.get(name, set()) & set(names)) for name in names})
    try:
        return list(sorter.static_order())
    except CycleError as error:
        circle = " -> ".join(sorted(set(error.args[1])))
        raise Invalid(
            f"The queries {circle} read each other's output, so no cut is consistent while they run: stop the job with "
            "a savepoint instead."
        ) from error


def readers(graph: Iterable[Flow]) -> Mapping[str, set[str]]:
    """Return the queries that read what a query writes, by its name. What it reads of its own changes nothing."""
    listed = list(graph)
    return {
        each.name: {
            other.name for other in listed if other.name != each.name and not set(each.writes).isdisjoint(other.reads)
        }
        for each in listed
    }


def regions(queries: Mapping[str, Edges]) -> list[tuple[str, ...]]:
    """Return the queries that restart together, in the order in which the first of each region was declared."""
    # A name that no query writes connects no queries: ten queries that read one topic are ten regions. A name that
    # queries write connects them with each other and with all that read it.
    parents = {name: name for name in queries}
    writers: dict[str, str] = {}
    for name, query in queries.items():
        for each in query.writes:
            _join(parents, writers.setdefault(each, name), name)
    for name, query in queries.items():
        for each in query.reads:
            if each in writers:
                _join(parents, writers[each], name)
    found: dict[str, list[str]] = {}
    for name in queries:
        found.setdefault(_root(parents, name), []).append(name)
    return [tuple(each) for each in found.values()]


def _join(parents: dict[str, str], one: str, other: str) -> None:
    parents[_root(parents, other)] = _root(parents, one)


def _root(parents: dict[str, str], name: str) -> str:
    while parents[name] != name:
        parents[name] = parents[parents[name]]  # halves the path, so that long chains stay cheap
        name = parents[name]
    return name
