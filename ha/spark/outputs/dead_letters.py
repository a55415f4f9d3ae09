"""DeadLetters: records that cannot be processed are published beside their batch, counted, and limited."""

import logging
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ha.hook import misses
from ha.outputs.layout import DEAD_LETTERS
from ha.program.output_report import REPORTS
from ha.spark.outputs.output import Output
from leader.errors import InvalidSettings, TooManyDeadLetters
from store.clock import now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger("ha")


class LetterBudget:
    """Tolerates dead letters as long as no interval has more, as Flink's restart strategy ``failure-rate`` counts."""

    def __init__(self, max_failures_per_interval: int, failure_rate_interval: float) -> None:
        """Begin without a dead letter."""
        # max_failures_per_interval: dead letters that are tolerated; 0 tolerates none.
        # failure_rate_interval: seconds.
        # InvalidSettings: one of them is out of range.
        if max_failures_per_interval < 0:
            raise InvalidSettings(f"max_failures_per_interval is {max_failures_per_interval}: it must be at least 0.")
        if not 0 < failure_rate_interval < float("inf"):
            raise InvalidSettings(f"failure_rate_interval is {failure_rate_interval:g} s: it must be more than 0.")
        self._most, self._interval = max_failures_per_interval, failure_rate_interval
        self._spent: deque[tuple[float, int]] = deque()

    def left(self, at: float) -> int:
        """Return how many more are tolerated now."""
        while self._spent and at - self._spent[0][0] > self._interval:
            self._spent.popleft()
        return self._most - sum(count for _, count in self._spent)

    def spend(self, count: int, at: float) -> None:
        """Take note of dead letters that were published."""
        if count:
            self._spent.append((at, count))


class DeadLetters:
    """Writes the batches of a query to an output, and apart from them the records that cannot be processed.

    Give it to ``foreachBatch`` as it is. One rename decides a batch and its dead letters, so these are there exactly
    once as well: as JSON, in ``<output>/_dead_letters/batch=<id>``.
    """

    def __init__(
        self,
        output: Output,
        dead: str,
        letter: Sequence[str],
        rows: Sequence[str] = ("*",),
        *,
        max_failures_per_interval: int = 100,
        failure_rate_interval: float = 60.0,
    ) -> None:
        """Say which records are dead letters, and how many are tolerated.

        Args:
            output: of the query; without a partition commit.
            dead: a condition in SQL, such as ``parsed IS NULL``. A record for which it is not known is one, too.
            letter: what is kept of a dead letter, as for ``selectExpr``: where it is from, and what it was. For Kafka
                ``["topic", "partition", "offset", "CAST(value AS STRING) AS value"]``; for files
                ``["_metadata.file_path AS file", "value"]``, selected where the file is read.
            rows: what is published of the others, in the same form.
            max_failures_per_interval: dead letters that are tolerated within the interval; 0 for none.
            failure_rate_interval: seconds.

        Raises:
            InvalidSettings: one of them is out of range.
        """
        if isinstance(letter, str) or isinstance(rows, str) or not letter or not rows:
            raise InvalidSettings("Dead letters need lists of expressions, such as letter=['offset', 'value'].")
        self._output, self._dead = output, f"coalesce(({dead}), true)"
        self._letter, self._rows = list(letter), list(rows)
        self._budget = LetterBudget(max_failures_per_interval, failure_rate_interval)

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write a batch, as :meth:`write` does; for ``foreachBatch``."""
        self.write(batch, batch_id)

    def write(self, batch: "DataFrame", batch_id: int) -> bool:
        """Write a batch and its dead letters, and publish both.

        The batch is kept by Spark meanwhile, so that it is evaluated once.

        Args:
            batch: its records.
            batch_id: number that Spark gave to the batch.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            InvalidSettings: the output has a partition commit.
            TooManyDeadLetters: the batch has more than are tolerated. Nothing of it is published.
        """
        with misses.noting(self._output.name, self._output.home, batch, batch_id):
            return self._write(batch, batch_id)

    def _write(self, batch: "DataFrame", batch_id: int) -> bool:
        batch.persist()
        try:
            found = batch.where(self._dead)
            count = found.count()
            at = now()
            if count > (left := self._budget.left(at)):
                first = found.selectExpr(*self._letter).selectExpr("to_json(struct(*))").collect()[0][0]
                raise TooManyDeadLetters(
                    f"Batch {batch_id} of output {self._output.name!r} has {count} records that cannot be processed, "
                    f"and {left} are tolerated now. The first one: {first}"
                )
            alive = batch.where(f"NOT {self._dead}").selectExpr(*self._rows)
            dead = found.selectExpr(*self._letter).coalesce(1) if count else None
            published = self._output.write(alive, batch_id, dead)
        finally:
            batch.unpersist()
        if count and published:
            self._budget.spend(count, at)
            REPORTS.add(self._output.name, dead_letters=count)
            REPORTS.show()
            _log.warning(
                "Batch %d of output %s has %d dead letters: see %s.", batch_id, self._output.name, count, DEAD_LETTERS
            )
        return published
