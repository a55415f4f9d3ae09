"""A round of a replica: the files that it copies, their order, and the files that it then deletes. Pure.

A replica holds the closures of some batches of its source. At every instant the newest of them is complete, whatever
was moved last:

- A round moves what the closure of one batch adds. First its offsets, by which an interrupted round is known again;
  then tables and schemas, which other files name; then the rest; the commit comes last.
- Files of Spark keep their content under their name, but for few. So a file that is there is not moved again, as long
  as the source still is the same line of batches: see :func:`same_line`. Another line begins a new replica.
- Afterwards files that no kept closure needs are deleted; a file that names others goes before them.

Tried with a simulated Spark and deaths at every call (tests/unit/ha/spark/replication/test_replica.py).
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.closure import Closure

# Tables and schemas, which other files name.
_NAMED = re.compile(r"state/.+/(?:(?:SSTs|logs)/[^/]+|_metadata/schema.*|_stateSchema/.+)")

_TABLE = re.compile(r"state/.+/(?:SSTs|logs)/[^/]*-[0-9a-f-]{36}\.[a-z]+")
_LOG = re.compile(r"(offsets|commits)/([0-9]{1,19})")
_OPERATOR = re.compile(r"state/[0-9]+/_metadata/v2/([0-9]{1,19})")


class ReplicaLine(StrEnum):
    """How a source and its replica belong together."""

    SAME = "same"  # the source continues what the replica holds
    OTHER = "other"  # the source was put back, or started from scratch: its names may mean other contents
    UNKNOWN = "unknown"  # the source has forgotten what the replica holds: see `ambiguous`


def anchor(present: Iterable[str]) -> int | None:
    """Return the newest batch whose offsets are in the replica; None if there are none."""
    found = (match for match in map(_LOG.fullmatch, present) if match)
    return max((int(match[2]) for match in found if match[1] == "offsets"), default=None)


def same_line(batch: int, newest: int | None, here: bytes | None, there: bytes | None) -> ReplicaLine:
    """Return whether the source continues what the replica holds. Offsets have the time at which their batch began."""
    # `batch` of the source is to be moved, `newest` is the anchor of the replica. Source (here) and replica (there) say
    # what the offsets of that one are; None if the source has none.
    if here is not None:
        return ReplicaLine.SAME if here == there else ReplicaLine.OTHER
    return ReplicaLine.OTHER if newest is not None and newest > batch else ReplicaLine.UNKNOWN


def ambiguous(closure: Closure, present: Mapping[str, int]) -> list[str]:
    """Return the files of a closure that the replica has under a name that says nothing of their content."""
    return sorted(path for path in closure.files if path in present and not is_unique(path))


def is_unique(path: str) -> bool:
    """Whether nothing else is ever written under this name: versions with ids, and tables."""
    if _TABLE.fullmatch(path.removesuffix(".crc")):
        return True
    named = CheckpointFiles.state_file(path.removesuffix(".crc"))
    return named is not None and bool(named[1].id)


def phases(closure: Closure) -> list[list[str]]:
    """Return all files of a closure in the order in which they are moved; those of one list in any order."""
    offsets, commit = f"offsets/{closure.batch}", f"commits/{closure.batch}"
    between = sorted((closure.files.keys() | closure.rebuilt.keys()) - {offsets, commit})
    named = [path for path in between if _NAMED.fullmatch(path)]
    return [[offsets], named, [path for path in between if not _NAMED.fullmatch(path)], [commit]]


def surplus(present: Iterable[str], kept: Iterable[Iterable[str]]) -> list[list[str]]:
    """Return what no closure that is kept needs, in the order in which it goes: commits first, then what names."""
    going = sorted(set(present).difference(*kept))
    commits = [path for path in going if path.startswith("commits/")]
    named = [path for path in going if _NAMED.fullmatch(path)]
    rest = sorted(set(going) - {*commits, *named})
    return [each for each in (commits, rest, named) if each]


def beyond(names: CheckpointFiles, closure: Closure) -> list[list[str]]:
    """Return what must go, in this order, so that Spark resumes after the closure's batch and sees nothing else."""
    # Spark takes its interval of compaction from the two newest compacted logs of a source, so only those that the
    # closure needs may stay. What is older than the batch stays: Spark forgets it itself.
    batch, needed = closure.batch, closure.files.keys() | closure.rebuilt.keys()
    going = []
    for path in names.sizes.keys() - needed:
        log, operator = _LOG.fullmatch(path), _OPERATOR.fullmatch(path)
        version = CheckpointFiles.state_file(path.removesuffix(".crc"))
        if (
            (log and int(log[2]) > batch)
            or (operator and int(operator[1]) > batch)
            or (version and version[1].number > batch + 1)
            or path.startswith("sources/")
        ):
            going.append(path)
    return surplus(going, [])
