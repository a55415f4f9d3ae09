"""Flow: which queries read the results of others, the order and regions that follow, and wide sources split for these.

Of a split source a part never moves to another region while their number is the same: Kafka partitions that are added
go on in turn, and a file goes by its name. The number is in the name of a region, so that another number means other
queries. Pure.
"""

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

import msgspec

from leader.errors import InvalidSettings
from leader.layout.names import check_word
from store.errors import Invalid

_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


class Flow(msgspec.Struct, frozen=True):
    """The declared sources and destinations of a query."""

    name: str  # of the query
    reads: list[str]  # names of what it reads
    writes: list[str]  # names of what it writes


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


def regions(graph: Iterable[Flow]) -> list[tuple[str, ...]]:
    """Return the queries that restart together, in the order in which the first of each region was declared."""
    # A name that no query writes connects no queries: ten queries that read one topic are ten regions. A name that
    # queries write connects them with each other and with all that read it.
    listed = list(graph)
    parents = {query.name: query.name for query in listed}
    writers: dict[str, str] = {}
    for query in listed:
        for each in query.writes:
            _join(parents, writers.setdefault(each, query.name), query.name)
    for query in listed:
        for each in query.reads:
            if each in writers:
                _join(parents, writers[each], query.name)
    found: dict[str, list[str]] = {}
    for name in parents:
        found.setdefault(_root(parents, name), []).append(name)
    return [tuple(each) for each in found.values()]


def _join(parents: dict[str, str], one: str, other: str) -> None:
    parents[_root(parents, other)] = _root(parents, one)


def _root(parents: dict[str, str], name: str) -> str:
    while parents[name] != name:
        parents[name] = parents[parents[name]]  # halves the path, so that long chains stay cheap
        name = parents[name]
    return name


def kafka_regions(name: str, topics: Mapping[str, int], count: int) -> dict[str, str]:
    """Split the partitions of Kafka topics into regions.

    Args:
        name: begins the names of the regions.
        topics: number of partitions of each topic. If a topic grows, give the new number.
        count: of the regions.

    Returns:
        By region, the value of Spark's option ``assign``; without regions that would have nothing to read.

    Raises:
        InvalidName: the regions cannot have that name.
        InvalidSettings: there is nothing to split, or no region.
    """
    _check(count, sum(topics.values()), "partitions")
    groups: list[dict[str, list[int]]] = [{} for _ in range(count)]
    for topic in sorted(topics):
        for partition in range(topics[topic]):
            groups[(zlib.crc32(topic.encode()) + partition) % count].setdefault(topic, []).append(partition)
    return _named(name, [json.dumps(each) if each else "" for each in groups])


def file_regions(name: str, folders: Iterable[str], count: int) -> dict[str, str]:
    """Split folders, or files, into regions.

    Args:
        name: begins the names of the regions.
        folders: URIs or paths without braces or commas.
        count: of the regions.

    Returns:
        By region with something to read, a path for Spark's file source that stands for all of its folders.

    Raises:
        InvalidName: the regions cannot have that name.
        InvalidSettings: there is nothing to split, or no region, or a name with a brace or a comma.
    """
    paths = sorted(set(folders))
    _check(count, len(paths), "folders")
    groups: list[list[str]] = [[] for _ in range(count)]
    for path in paths:
        if set(path) & set("{},"):
            raise InvalidSettings(f"The folder {path!r} cannot be in a region: its name has a brace or a comma.")
        if not path.startswith("/") and not _store(path):
            raise InvalidSettings(f"The folder {path!r} cannot be in a region: it is relative.")
        groups[zlib.crc32(path.encode()) % count].append(path)
    if len(stores := {_store(path) for path in paths}) > 1:
        raise InvalidSettings(f"Folders of several stores cannot be in one region: {', '.join(sorted(stores))}.")
    return _named(name, [_pattern(each) if each else "" for each in groups])


def _check(count: int, parts: int, what: str) -> None:
    if count < 1 or parts < 1:
        raise InvalidSettings(f"{parts} {what} cannot be split into {count} regions: give at least one of each.")


def _named(name: str, groups: list[str]) -> dict[str, str]:
    """Return the groups that are not empty."""
    return {
        check_word(f"{name}-{number}-of-{len(groups)}", "a region"): group
        for number, group in enumerate(groups)
        if group
    }


def _store(path: str) -> str:
    """Return what a URI begins with, up to its path; ``file:///a`` and ``/a`` differ."""
    found = _STORE.match(path)
    return found[0] if found else ""


def _pattern(paths: list[str]) -> str:
    """Return a pattern of Hadoop's; a scheme within braces would not be taken for one."""
    if len(paths) == 1:
        return paths[0]
    store = _store(paths[0])
    return f"{store}/{{{','.join(path.removeprefix(store).lstrip('/') for path in paths)}}}"
