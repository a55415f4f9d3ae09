"""BatchWatch: finds batches that take too long, from looks at the queries. Pure.

A batch is under way while a trigger of its query is active and has found data. Its time is what this watch has seen of
it: time between two looks that are far apart does not count, because the host was paused then, and the batch with it.
"""

from collections.abc import Container
from dataclasses import dataclass

LOOKS = 10  # looks that a time-out has room for, at least

LONGEST_PERIOD_S = 2.0
"""A batch is interrupted at most one look too late, because it may begin just after a look. However long the time-out
is, that has to be short. A look costs two calls of the JVM for each query."""

FAR_APART, LONGEST_APART_S = 0.6, 30.0
"""Share of the time-out, and seconds, between two looks that cannot be explained by a host that is only slow."""


@dataclass(slots=True)
class _Batch:
    before: int | None
    seen_at: float
    seconds: float = 0.0
    told: bool = False


class BatchWatch:
    """Counts for how long each run of a query has been in its present batch."""

    def __init__(self, timeout: float) -> None:
        """Begin without a batch; ``timeout`` is in seconds, more than 0."""
        self.timeout = timeout
        self.period = min(LONGEST_PERIOD_S, timeout / LOOKS)  # seconds from one look to the next, at most
        self._far_apart = min(LONGEST_APART_S, FAR_APART * timeout)
        self._batches: dict[str, _Batch] = {}

    def next_look(self, looked: float, *, answered: bool) -> float:
        """Return when to look next: after a period, or just when a batch is overdue if nothing changes."""
        # As long as not all queries have answered the last look, it is not known what is overdue.
        due = [each.seen_at + self.timeout - each.seconds for each in self._batches.values() if not each.told]
        return min([looked + self.period, *(due if answered else [])])

    def overdue(self, run_id: str, before: int | None, now: float, *, works: bool) -> bool:
        """Take note of a look at a run, which works or not; returns True once for a batch that takes too long."""
        # `before` is the number of the last batch that this run has completed; None if there is none.
        if not works:
            self._batches.pop(run_id, None)
            return False
        found = self._batches.get(run_id)
        if found is None or found.before != before:
            self._batches[run_id] = _Batch(before, now)
            return False
        passed, found.seen_at = now - found.seen_at, now
        if passed <= self._far_apart:
            found.seconds += passed
        if found.told or found.seconds < self.timeout:
            return False
        found.told = True
        return True

    def forget(self, runs: Container[str]) -> None:
        """Forget all other runs than these."""
        self._batches = {run_id: batch for run_id, batch in self._batches.items() if run_id in runs}
