"""Regions: queries that restart together, because one reads what another writes. Pure.

A name that no query writes connects nobody: ten queries that read one topic are ten regions. A name that queries write
connects them with each other and with all that read it.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol


class Edges(Protocol):
    """The declared reads and writes of a query."""

    @property
    def reads(self) -> Iterable[str]:
        """Names of what it reads."""

    @property
    def writes(self) -> Iterable[str]:
        """Names of what it writes."""


def regions(queries: Mapping[str, Edges]) -> list[tuple[str, ...]]:
    """Return the connected components, in the order in which their first queries were declared.

    Args:
        queries: by name, in the order of their declaration; a region keeps that order.
    """
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
