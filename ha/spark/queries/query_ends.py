"""QueryEnds: whether the queries of a block have ended so that the program may end, too. Pure.

A query that fails has to be started again, and to end without an error, or the program has to say that this is meant.
"""

import threading
from collections.abc import Collection

from ha.spark.queries.query_failures import Failure, failure


class QueryEnds:
    """The runs of queries that a listener hears of. Spark's bus waits for its methods, which return at once."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}
        """By run id, the name of a query that has not ended; for one without a name, its id."""
        self._failed: dict[str, Failure] = {}
        self._any = False
        self._changed = threading.Condition()

    def started(self, run_id: str, query: str) -> None:
        """A query runs: whatever became of its runs before."""
        with self._changed:
            self._any = True
            self._runs[run_id] = query
            self._failed.pop(query, None)

    def ended(self, run_id: str, error: str | None) -> None:
        """A run has ended; ``error`` is its exception with the causes."""
        with self._changed:
            query = self._runs.pop(run_id, None)
            if query is not None and error is not None:
                self._failed[query] = failure(query, error)
            self._changed.notify_all()

    def settle(self, active: Collection[str], seconds: float) -> None:
        """Wait so many seconds at most for the events of runs that are over: each comes after its query's waiter."""
        with self._changed:
            self._changed.wait_for(lambda: self._runs.keys() <= {*active}, seconds)

    @property
    def failed(self) -> Failure | None:
        """A query that has failed and was not started again; None if there is none."""
        with self._changed:
            return next(iter(self._failed.values()), None)

    def unfinished(self, active: Collection[str]) -> str:
        """Return why the program cannot mean this end; empty if it can, or if a query has failed."""
        with self._changed:
            if not self._any:
                return "no query was started"
            runs = [query for run_id, query in self._runs.items() if run_id in active]
            unknown = [query for run_id, query in self._runs.items() if run_id not in active]
        if runs:
            return f"query {runs[0]} was still active"
        return f"it is not known how query {unknown[0]} has ended" if unknown else ""
