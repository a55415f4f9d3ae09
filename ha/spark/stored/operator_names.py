"""Operator names: the number of each stateful operator in its query's plan, reported and kept when it changes.

Checkpoints and Spark's errors name operators by numbers only, and a changed program may number them in another way.
So names are kept beside the published checkpoints, in one versioned file ``graph/operators`` for all queries: from
which batch on a query had which id and which operators. It is written only when one of these changes.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from ha.checkpoints.contents import Json, Unreadable, operator_stores
from ha.leadership.leadership import Leadership
from leader.job.fenced_directory import FencedDirectory
from leader.job.versioned_files import VersionedFiles
from leader.layout.names import GRAPH, SPARK
from store.errors import StoreError

MOST_CHANGES = 8  # newest changes of the names of one query that are kept
MOST_QUERIES = 256  # queries whose names are kept; as many have published checkpoints

_NAME = "operators"

_log = logging.getLogger("ha")


class NamesSince(msgspec.Struct, frozen=True):
    """Names of a query, as of one batch and the next ones."""

    batch: int  # the first one that is known to have them
    id: str  # of the query, as Spark gives it
    operators: dict[int, str]  # name of each operator with state, by its number

    @property
    def said(self) -> str:
        """The operators in one line, for people."""
        return ", ".join(f"{number} is {name}" for number, name in sorted(self.operators.items())) or "none"


Kept = dict[str, list[NamesSince]]  # of each query the changes of its names, the oldest first


def added(known: Sequence[NamesSince], now: NamesSince) -> list[NamesSince]:
    """Return the changes of a query with the present numbers, without notes of batches that were taken back."""
    if known and (known[-1].id, known[-1].operators) == (now.id, now.operators) and known[-1].batch <= now.batch:
        return list(known)
    before = [each for each in known if each.batch < now.batch]
    if before and (before[-1].id, before[-1].operators) == (now.id, now.operators):
        return before
    return [*before, now][-MOST_CHANGES:]


def kept(directory: FencedDirectory) -> Kept:
    """Return the names that are kept of a job's queries; none if they cannot be read. Costs a list and a read."""
    found = graph_files(directory).load(_NAME)
    try:
        return msgspec.json.decode(found.data, type=Kept) if found is not None else {}
    except msgspec.DecodeError:
        return {}


class OperatorNames:
    """Reports and keeps the names of a job's queries during one leadership; for one thread."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._kept: Kept | None = None
        self._first: dict[str, int] = {}
        """By query, the batch of the first look. The program that runs now may have committed later ones only."""
        self._again: set[str] = set()

    def committed(self, query: str, batch: int) -> None:
        """Look at a query's names when its newest batch is found, and at its first new one; else do nothing."""
        # A look costs three calls, and three for each operator. The first one of a job reads what was kept, too.
        first = query not in self._first
        if not first and (query in self._again or batch <= self._first[query]):
            return
        if first:
            self._first[query] = batch
        else:
            self._again.add(query)
        with suppress(StoreError, Unreadable, msgspec.DecodeError):  # it is only told
            now = names(self._leadership, query, batch)
            changed = self._keep(query, now)
            if first or changed:
                _log.info(
                    "%s: query %r has the id %s; operators with state: %s.",
                    self._leadership.job, query, now.id, now.said,
                )  # fmt: skip

    def _keep(self, query: str, now: NamesSince) -> bool:
        if self._kept is None:
            self._kept = kept(self._leadership.own)
        known = self._kept.get(query, [])
        found = added(known, now)
        if found == known:
            return False
        others = {name: each for name, each in self._kept.items() if name != query}
        wanted = dict(list({**others, query: found}.items())[-MOST_QUERIES:])
        graph_files(self._leadership.own).put(_NAME, msgspec.json.encode(wanted))
        self._kept = wanted
        return True


def names(leadership: Leadership, query: str, batch: int) -> NamesSince:
    """Return the id of a query, and the name of each operator with state as of a batch."""
    metadata = leadership.own.read(f"{SPARK}/{query}/metadata")
    identity = str(msgspec.json.decode(metadata, type=Json).get("id", ""))
    return NamesSince(batch, identity, _operators(leadership, query, batch))


def named(metadata: Mapping[int, bytes]) -> dict[int, str]:
    """Return the name of each operator, given its metadata; raises ``Unreadable`` if they have another form."""
    return {operator: operator_stores(data).name for operator, data in metadata.items()}


def _operators(leadership: Leadership, query: str, batch: int) -> dict[int, str]:
    place = f"{SPARK}/{query}/state"
    found = {}
    for number in leadership.names(place):
        if not number.isdecimal():
            continue
        folder = f"{place}/{number}/_metadata"
        there = leadership.names(folder)
        if "v2" in there:
            since = [int(each) for each in leadership.names(f"{folder}/v2") if each.isdecimal()]
            file = f"v2/{max(valid)}" if (valid := [each for each in since if each <= batch]) else ""
        else:
            file = "metadata" if "metadata" in there else ""
        if file:
            found[int(number)] = leadership.own.read(f"{folder}/{file}")
    return named(found)


def graph_files(directory: FencedDirectory) -> VersionedFiles:
    """Return the small files that describe a job's queries, and who reads whom."""
    return VersionedFiles(directory, GRAPH, "a file of the graph")
