"""Spark's commit log: which batches a query has completed, and which files of its checkpoint belong together.

Spark writes ``offsets/N`` before batch N, the state of version N + 1 and the sources' logs during the batch, and
``commits/N`` last. So once ``commits/N`` is listed, all files that batch N needs exist, and they stay until Spark
forgets batch N. Files of later batches can be left out. The rest is what a crash right after the commit would leave.
"""

import re
from collections.abc import Iterable, Mapping

from ha.leadership.leadership import Leadership
from ha.spark.locations import check_query
from leader.errors import InvalidName
from leader.layout.names import SPARK

_NAMELESS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Name that Spark gives to the checkpoint of a query without a name, new at each start: nobody could ask for it."""

_NUMBER = r"[0-9]{1,19}"  # Spark's numbers have 64 bits
_BATCH = re.compile(_NUMBER)
_LOG = re.compile(rf"(?:commits|offsets|sources/[^/]+)/({_NUMBER})(?:\.compact)?")
_STATE = re.compile(rf"state/(?:.*/)?({_NUMBER})(?:_[0-9A-Za-z-]+)?\.(?:delta|snapshot|changelog|zip)")


def queries(leadership: Leadership) -> list[str]:
    """Return the queries that have a name and a checkpoint in the leader directory, sorted. Costs one list.

    Raises:
        Fenced: another leader has taken over.
        StoreError: the store did not answer.
    """
    return [name for name in sorted(leadership.names(SPARK)) if _is_query(name)]


def newest_commit(leadership: Leadership, query: str) -> int | None:
    """Return the newest batch in a query's commit log; None if there is none. Costs one list.

    Raises:
        Fenced: another leader has taken over.
        InvalidName: no query with a checkpoint here can have that name.
        StoreError: the store did not answer.
    """
    return newest_batch(leadership.names(f"{SPARK}/{check_query(query)}/commits"))


def newest_batch(paths: Iterable[str]) -> int | None:
    """Return the newest batch, given the paths of the files in a commit log; None if nothing was committed."""
    names = (path.rpartition("/")[2] for path in paths)
    return max((int(name) for name in names if _BATCH.fullmatch(name)), default=None)


def kept(listing: Mapping[str, int]) -> dict[str, int]:
    """Return the files that Spark reads: neither those still to be renamed to their names, nor local check sums.

    Args:
        listing: size of each file in the checkpoint, by path.
    """
    return {path: size for path, size in listing.items() if not path.rpartition("/")[2].startswith(".")}


def consistent(listing: Mapping[str, int], newest: int) -> dict[str, int]:
    """Return the files that are needed to continue after a batch, and those that do no harm.

    Args:
        listing: size of each file in the checkpoint, by path; listed after that batch was seen in the commit log.
        newest: number of the batch.
    """
    return {path: size for path, size in kept(listing).items() if not _later(path, newest)}


def _later(path: str, newest: int) -> bool:
    if log := _LOG.fullmatch(path):
        return int(log[1]) > newest
    state = _STATE.fullmatch(path)
    return state is not None and int(state[1]) > newest + 1


def _is_query(name: str) -> bool:
    try:
        check_query(name)
    except InvalidName:  # a file of another program
        return False
    return not _NAMELESS.fullmatch(name)
