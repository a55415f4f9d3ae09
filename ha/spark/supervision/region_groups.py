"""Region groups: splits a wide source, so that each region reads its own part. Pure.

A part never moves to another region while their number is the same: Kafka partitions that are added go on in turn, and
a file goes by its name. The number is in the name of a region, so that another number means other queries.
"""

import json
import re
import zlib
from collections.abc import Iterable, Mapping

from leader.errors import InvalidSettings
from leader.layout.names import check_word

_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


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
