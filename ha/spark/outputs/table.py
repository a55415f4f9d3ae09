"""Table: a Delta or Iceberg table to which a streaming query publishes each batch exactly once.

Both formats can tell a batch that comes again by a number; the number is the journal's. Delta's transaction carries it,
and Iceberg publishes what was staged under it once: see :mod:`ha.spark.outputs.delta` and
:mod:`ha.spark.outputs.iceberg`, and decisions 86 and 87.
"""

import logging
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ha.leadership.dry_run_job import is_dry_run
from ha.leadership.leadership import Leadership
from ha.outputs.batch import Batch
from ha.outputs.journal import Journal
from ha.program.output_report import REPORTS, WRITE
from ha.spark.outputs.delta import DeltaTable
from ha.spark.outputs.iceberg import IcebergTable
from ha.spark.outputs.publisher import Publisher
from ha.spark.outputs.row_writer import counted
from ha.spark.outputs.table_format import Attempt
from ha.spark.session.private_names import jvm_of
from leader.errors import InvalidSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS: dict[str, type[DeltaTable | IcebergTable]] = {"delta": DeltaTable, "iceberg": IcebergTable}

_log = logging.getLogger("ha")


class Table(Publisher):
    """A table to which one query publishes its batches; give it to ``foreachBatch`` as it is.

    As with :class:`ha.spark.Output`, a batch that is done again is recognised, and anything else under its number is
    refused. Several tables in one batch, written one after the other by a function, have it exactly once each.
    """

    def __init__(
        self,
        leadership: Leadership,
        name_or_path: str,
        format: str = "delta",  # noqa: A002  # as Spark calls it
        write: "Callable[[DataFrame, str], object] | None" = None,
        *,
        name: str = "output",
    ) -> None:
        """Look whether the table is safe, and complete the batches that an earlier driver decided.

        Args:
            leadership: of the job.
            name_or_path: of the table, which must exist; a path is for Delta only.
            format: ``delta`` or ``iceberg``.
            write: called with the rows of a batch and the name of the table, to write them by exactly one statement on
                ``batch.sparkSession``, such as MERGE or an overwrite; default: they are appended.
            name: of the output, in the leader directory and in messages.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: the output cannot have that name.
            InvalidSettings: batches of this table cannot be published exactly once; the message says why.
            OutputLost: a batch that was decided cannot be published any more.
            StoreError: the store or the table did not answer.
        """
        from pyspark.sql import SparkSession  # noqa: PLC0415  # a module is imported without a session

        if format not in FORMATS:
            raise InvalidSettings(f"ha.spark.Table has no format {format!r}: choose {' or '.join(sorted(FORMATS))}.")
        if (spark := SparkSession.getActiveSession()) is None:
            raise InvalidSettings("ha.spark.Table needs a Spark session: build it before, on the same thread.")
        if (jvm := jvm_of(spark)) is None:
            raise InvalidSettings("ha.spark.Table needs a classic Spark session, not one of Spark Connect.")
        super().__init__(leadership, name)
        self._statement = write
        self._format = FORMATS[format](spark, jvm, name_or_path, f"ha/{leadership.job}/{name}")
        self._open(Journal(leadership, "", name, elsewhere=self._format))

    def _settle(self) -> None:
        if not is_dry_run():
            self._format.check()
            self._journal.settle()
            self._format.sweep()

    def _evaluated(self, rows: "DataFrame") -> int:
        return counted(rows)

    def _publish(self, rows: "DataFrame", origin: Batch) -> bool:
        attempt = Attempt(self._journal.id_of(origin.number) + origin.part, origin.plan, uuid.uuid4().hex)
        try:
            with REPORTS.timed(self._name, WRITE):
                before = self._format.before(rows.sparkSession, attempt)
                wrote = before or self._format.write(rows, attempt, self._statement)
        except Exception:
            self._journal.renames.check()  # a successor sweeps what a replaced driver has staged
            raise
        if before is not None:
            _log.info("Table %s has %s already: its rows of this try are dropped.", self._format.place, origin)
            self._journal.compare(origin, before, counted(rows))
        return self._journal.publish(attempt.id, origin, wrote) and before is None
