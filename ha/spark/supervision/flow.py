"""Flow: which query reads what another one writes, and the order that follows from it. Pure."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

from store.errors import Invalid


class Edges(Protocol):
    """The declared sources and destinations of a query."""

    @property
    def name(self) -> str:
        """Name of the query."""

    @property
    def reads(self) -> Iterable[str]:
        """Names of what it reads."""

    @property
    def writes(self) -> Iterable[str]:
        """Names of what it writes."""


def readers_first(queries: Iterable[str], graph: Iterable[Edges]) -> list[str]:
    """Return the queries in an order in which each comes before those from whom it reads.

    Raises:
        Invalid: some of them read each other's output.
    """
    names, read_by = sorted(queries), readers(graph)
    sorter = TopologicalSorter({name: sorted(read_by.get(name, set()) & set(names)) for name in names})
    try:
        return list(sorter.static_order())
    except CycleError as error:
        circle = " -> ".join(sorted(set(error.args[1])))
        raise Invalid(
            f"The queries {circle} read each other's output, so no cut is consistent while they run: stop the job with "
            "a savepoint instead, with `ha stop --savepoint`."
        ) from error


def readers(graph: Iterable[Edges]) -> Mapping[str, set[str]]:
    """Return the queries that read what a query writes, by its name. What it reads of its own changes nothing."""
    listed = list(graph)
    return {
        each.name: {
            other.name for other in listed if other.name != each.name and not set(each.writes).isdisjoint(other.reads)
        }
        for each in listed
    }
