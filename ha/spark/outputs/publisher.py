"""Publisher: gives each batch of a query to a journal once; the base of :class:`ha.spark.Output` and its siblings."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ha.hook import misses
from ha.leadership.dry_run_job import is_dry_run
from ha.leadership.lead import supervised
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.program.output_report import REPORTS, path_beside
from ha.spark.outputs.batch_origin import Origins
from ha.spark.outputs.row_writer import evaluate
from ha.spark.rewind.completing import settle
from leader.errors import NotLeader
from leader.layout.names import check_word

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def report(leadership: Leadership) -> None:
    """Have the outputs of this process report to its sidecar, if it has one."""
    if supervised(leadership.job) and (path := os.environ.get("HA_QUERIES")):
        REPORTS.path = path_beside(Path(path))


class Publisher(ABC):
    """One output of one query; give it to ``foreachBatch`` as it is."""

    def __init__(self, leadership: Leadership, name: str) -> None:
        """Open nothing yet: :meth:`_open` does, at the end of the construction."""
        self._name, self._leadership = check_word(name, "an output"), leadership

    def _open(self, journal: Journal) -> None:
        """Take the output over from an earlier driver."""
        self._journal = journal
        self._origins = Origins(journal.renames, self._name, self.home)
        settle(self._leadership)  # an earlier leader may have begun to put the query back
        report(self._leadership)
        try:
            self._settle()
        except BaseException:
            self.close()
            raise
        finally:
            REPORTS.show()

    def _settle(self) -> None:
        self._journal.settle()

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write a batch, as :meth:`write` does; for ``foreachBatch``."""
        self.write(batch, batch_id)

    @property
    def home(self) -> str:
        """URI of its folder in the leader directory."""
        return self._journal.staged

    @property
    def name(self) -> str:
        """Of the output."""
        return self._name

    def write(self, batch: "DataFrame", batch_id: int) -> bool:
        """Write a batch and publish it.

        Args:
            batch: its rows. They are evaluated even if it was published before: Spark's state needs it.
            batch_id: number that Spark gave to the batch. Markers in a table or topic have the journal's instead.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            Fenced: another leader has taken over. Whatever was decided, that leader publishes as well.
            ForeignBatch: the output has batches of another query, or of a later state of this one.
            InvalidSettings: a table is not safe any more, or its function or the batch does not fit; it says which.
            LeaderError: others have changed the table in a way that excludes the batch; Spark will do it again.
            NotLeader: the job is being stopped with a savepoint.
            OutputLost: the batch was decided, and cannot be published as things are; the message says why.
            StoreError: it is not known whether the batch was published; Spark will do it again.
        """
        with misses.noting(self._name, self.home, batch, batch_id):
            if is_dry_run():
                self._evaluated(self._shaped(batch))
                return True
            return self._once(batch, batch_id, self._publish)

    def _once(self, batch: "DataFrame", batch_id: int, publish: "Callable[[DataFrame, Batch], bool]") -> bool:
        if self._leadership.settling.is_set():
            raise NotLeader(f"Batch {batch_id} of output {self._name!r} is not begun: the job is being stopped.")
        origin = self._origins.of(batch, batch_id)
        rows = self._shaped(batch)
        self._check(origin)
        if published := self._journal.admit(origin):
            published = publish(rows, origin)
        else:
            self._journal.repeat(origin, self._evaluated(rows))
        self._origins.written(origin)
        return published

    def _shaped(self, batch: "DataFrame") -> "DataFrame":
        return batch

    def _evaluated(self, rows: "DataFrame") -> int | None:
        """Evaluate rows that are not published; return their number if it is compared with what was."""
        evaluate(rows)
        return None

    def _check(self, origin: Batch) -> None:  # noqa: B027  # most outputs take every batch
        """Refuse a batch that the output cannot have."""

    @abstractmethod
    def _publish(self, rows: "DataFrame", origin: Batch) -> bool: ...

    def close(self) -> None:
        """Let go of the file system."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
