"""Batch choice: chooses the batch of each query that a savepoint takes. Pure: its caller looks at the queries.

A batch publishes its rows before it commits, so another query may have read rows of an uncommitted batch. So the cut
looks at a reader before the queries that it reads from. Of each of these it then takes a batch that is at least as new
as all that it had begun by then. If need be, it waits for that commit; no query waits for the cut.
"""

from collections.abc import Generator, Iterable

import msgspec

from ha.spark.supervision.flow import Flow, readers, readers_first


class Look(msgspec.Struct, frozen=True):
    """The newest batch that a query has committed, and the newest that it has begun; None if there is none."""

    committed: int | None = None
    begun: int | None = None

    @property
    def complete(self) -> bool:
        """Whether all that was begun is committed."""
        return self.begun is None or (self.committed is not None and self.committed >= self.begun)


Cutting = Generator[str, Look, dict[str, int]]


def cut(queries: Iterable[str], graph: Iterable[Flow] = ()) -> Cutting:
    """Return the batch of each running query, by name; without queries that have committed none."""
    # The graph has what they are declared to read and write; a query that is not in it has no connections. Yields the
    # query to be looked at next. The same one again and again means: wait until it has committed its batch. Raises
    # `Invalid` if some of them read each other's output, so no order does.
    listed = list(graph)
    read_by = readers(listed)
    batches: dict[str, int] = {}
    for query in readers_first(queries, listed):
        look = yield query
        begun = look.begun
        while read_by.get(query) and not Look(look.committed, begun).complete:
            look = yield query
        if look.committed is not None:
            batches[query] = look.committed
    return batches


def settled(queries: Iterable[str]) -> Generator[str, Look, dict[str, int]]:
    """Choose the batches of queries that have ended: the newest commit of each, in any order."""
    # A batch that was interrupted belongs to the savepoint as it was begun: the restart does the same batch again.
    batches: dict[str, int] = {}
    for query in sorted(queries):
        look = yield query
        if look.committed is not None:
            batches[query] = look.committed
    return batches
