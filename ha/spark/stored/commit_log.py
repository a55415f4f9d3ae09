"""Spark's commit log: which batches a query has completed.

Spark writes ``offsets/N`` before batch N, the state of version N + 1 and the sources' logs during the batch, and
``commits/N`` last. So once ``commits/N`` is listed, all files that batch N needs exist, and they stay until Spark
forgets batch N. Which files these are is what :mod:`ha.checkpoints.closure` says.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from ha.checkpoints import contents
from ha.hook.query_rules import fault, named
from ha.leadership.leadership import Leadership
from ha.spark.stored.locations import check_query
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SPARK
from store.errors import Invalid, NotFound

_BATCH = re.compile(r"[0-9]{1,19}")  # Spark's numbers have 64 bits


class Logs(NamedTuple):
    """The newest batch that a checkpoint has committed, and the newest that it has begun; None if there is none."""

    committed: int | None = None
    begun: int | None = None

    @property
    def complete(self) -> bool:
        """Whether all that was begun is committed."""
        return self.begun is None or (self.committed is not None and self.committed >= self.begun)


def logs_of(directory: FencedDirectory, checkpoint: str) -> Logs:
    """Return how far a checkpoint in the leader directory has come. Costs two lists, of the commits first."""
    logs = (directory.list(f"{checkpoint}/{log}") for log in ("commits", "offsets"))
    return Logs(*(newest_batch(each.name for each in entries) for entries in logs))


def newest_offsets(leadership: Leadership, query: str) -> tuple[int | None, contents.Offsets | None]:
    """Return the newest batch that a query has begun, and what it was planned to read; None if that is not known."""
    place = f"{SPARK}/{query}/offsets"
    newest = newest_batch(leadership.names(place))
    with suppress(Invalid, NotFound, contents.Unreadable):
        return newest, contents.offsets(leadership.own.read(f"{place}/{newest}")) if newest is not None else None
    return newest, None


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


def no_checkpoint(job: str, query: str, known: Iterable[str]) -> Invalid:
    """Return the error of a query that a job does not have; it names those that there are."""
    it_has = ", ".join(sorted(known)) or "none"
    return Invalid(f"Job {job!r} has no checkpoint of a query {query!r}: it has {it_has}.")


def kept(listing: Mapping[str, int]) -> dict[str, int]:
    """Return the files that Spark reads: neither those still to be renamed to their names, nor local check sums."""
    return {path: size for path, size in listing.items() if not path.rpartition("/")[2].startswith(".")}


def is_query(name: str) -> bool:
    """Whether this is the name of a query that somebody could ask for."""
    return not fault(name)
