"""Cut: which batch of each query a savepoint takes. Pure: it asks for looks at the queries, and is given them.

A query may have read what another one has written in a batch that it has not committed yet: the rows are published
first. So whoever reads is looked at before those from whom it reads. Of each of these the cut then takes a batch that
is at least as new as all that it had begun by then. It waits for that commit, if need be; no query waits for the cut.
"""

from collections.abc import Generator, Iterable

import msgspec

from ha.spark.supervision.flow import Edges, readers, readers_first


class Look(msgspec.Struct, frozen=True):
    """The newest batch that a query has committed, and the newest that it has begun; None if there is none."""

    committed: int | None = None
    begun: int | None = None

    @property
    def complete(self) -> bool:
        """Whether all that was begun is committed."""
        return self.begun is None or (self.committed is not None and self.committed >= self.begun)


Cutting = Generator[str, Look, dict[str, int]]


def cut(queries: Iterable[str], graph: Iterable[Edges] = ()) -> Cutting:
    """Choose the batches of queries that run.

    Args:
        queries: the names of all.
        graph: what they are declared to read and write; who is not declared is connected with nobody.

    Yields:
        the query to be looked at next. The same one again and again means: wait until it has committed its batch.

    Returns:
        the batch of each query, by name; without those that have committed none.

    Raises:
        Invalid: some of them read each other's output, so no order does.
    """
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
    """Choose the batches of queries that have ended: the newest commit of each, in any order.

    A batch that was interrupted belongs to the savepoint as it was begun: the restart does the same batch again.
    """
    batches: dict[str, int] = {}
    for query in sorted(queries):
        look = yield query
        if look.committed is not None:
            batches[query] = look.committed
    return batches
