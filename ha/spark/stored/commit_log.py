"""Spark's commit log: which batches a query has completed.

Spark writes ``offsets/N`` before batch N, the state of version N + 1 and the sources' logs during the batch, and
``commits/N`` last. So once ``commits/N`` is listed, all files that batch N needs exist, and they stay until Spark
forgets batch N. Which files these are is what :mod:`ha.checkpoints.closure` says.
"""

import re
from collections.abc import Iterable, Mapping

from ha.hook.query_rules import fault, named
from ha.leadership.leadership import Leadership
from ha.spark.stored.locations import check_query
from leader.layout.names import SPARK

_BATCH = re.compile(r"[0-9]{1,19}")  # Spark's numbers have 64 bits


def queries(leadership: Leadership) -> list[str]:
    """Return the queries that have a name and a checkpoint in the leader directory, sorted. Costs one list."""
    return named(leadership.names(SPARK))


def newest_commit(leadership: Leadership, query: str) -> int | None:
    """Return the newest batch in a query's commit log; None if there is none. Costs one list."""
    return newest_batch(leadership.names(f"{SPARK}/{check_query(query)}/commits"))


def newest_batch(paths: Iterable[str]) -> int | None:
    """Return the newest batch, given the paths of the files in a commit log; None if nothing was committed."""
    names = (path.rpartition("/")[2] for path in paths)
    return max((int(name) for name in names if _BATCH.fullmatch(name)), default=None)


def kept(listing: Mapping[str, int]) -> dict[str, int]:
    """Return the files that Spark reads: neither those still to be renamed to their names, nor local check sums."""
    return {path: size for path, size in listing.items() if not path.rpartition("/")[2].startswith(".")}


def is_query(name: str) -> bool:
    """Whether this is the name of a query that somebody could ask for."""
    return not fault(name)
