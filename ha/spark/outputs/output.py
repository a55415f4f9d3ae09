"""Output: a streaming query's output, each batch exactly once, even if a replaced driver still writes.

Spark writes a batch below the leader directory, and :class:`ha.outputs.journal.Journal` publishes it. So the partitions
of one batch never come from two tries. The journal travels with the leader directory to the successor. A fenced driver
decides nothing: Spark brings ``staged`` back to life, but it never writes to ``ready``, which is created without
parents. See decisions 17 and 51.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ha.hook import misses
from ha.leadership.dry_run_job import output_here
from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.outputs.batch import Batch
from ha.outputs.columns import types_of
from ha.outputs.journal import Journal
from ha.outputs.partition_commit import METASTORE, CommittedPartition, PartitionCommit
from ha.outputs.record import Record
from ha.program.output_report import REPORTS, WRITE
from ha.spark.outputs.publisher import Publisher
from ha.spark.outputs.row_writer import RowWriter
from leader.errors import InvalidSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MERGEABLE = ("json", "text")  # formats in which files behind each other are a file
_ONE_FILE = {"maxRecordsPerFile": "0"}  # option of mergeable outputs

_COLUMN = "batch"
"""The last column of a table in a metastore: Spark reads the files of a partition from its directory itself."""


class Output(Publisher):
    """A directory to which one query publishes its batches; give it to ``foreachBatch`` as it is.

    If a query does a batch again, with the same checkpoint and input, what was published stays, and the rows of the new
    try are dropped. Any other batch under a number that is taken ends its query with a
    :class:`ha.errors.ForeignBatch`. Several partitions of one batch appear one after the other.
    """

    def __init__(
        self,
        leadership: Leadership,
        uri: str,
        name: str = "output",
        *,
        source: str = "json",
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        commit: PartitionCommit | None = None,
        mergeable: bool = False,
    ) -> None:
        """Create the directories, complete the batches that an earlier driver decided, and drop those it did not.

        Args:
            leadership: of the job.
            uri: directory in which batches appear as ``batch=<id>``. It must be in the job's file system and belong to
                one query. A query that starts without its checkpoint counts from 0 and needs another directory.
            name: of the output, in the leader directory and in messages; need not be unique.
            source: Spark's name of the file format: parquet, json, text, ...
            partition_by: columns. Batches then appear below ``<column>=<value>/...``, each partition as a whole.
            options: for Spark's writer.
            commit: when a partition is finished, and how readers learn of that; default: never.
            mergeable: whether a partition of a batch is one file, ``batch-<id>.json``, and lies beside those of other
                batches, so that `ha output merge` can make one of many. For json and text; chosen once.

        Raises:
            AlreadyExists: the output has a batch that this job decided otherwise.
            Fenced: another leader has taken over.
            InvalidName: the output cannot have that name.
            InvalidSettings: the output is in another file system, so no rename leads there; or it has no partitions to
                commit, or some that readers would not find.
            OutputLost: files of a batch that was decided are gone.
            StoreError: the store did not answer.
        """
        layout.check_columns(partition_by, *(() if mergeable else (layout.BATCH,)))
        self._partition_by = tuple(partition_by)
        super().__init__(leadership, name)
        if mergeable and source not in MERGEABLE:
            raise InvalidSettings(
                f"Output {name!r} cannot be mergeable, because files of {source} behind each other are no such file: "
                f"choose {' or '.join(MERGEABLE)}, write fewer, larger batches, or use a table format such as "
                "Delta or Iceberg, which has a compaction of its own."
            )
        if mergeable and commit is not None:
            raise InvalidSettings(f"Output {name!r} has a partition commit, so it cannot be mergeable.")
        self._mergeable = mergeable
        if commit is not None and not self._partition_by:
            raise InvalidSettings(f"Output {name!r} has no partitions to commit: give partition_by, too.")
        self._commit = commit
        self._session: SparkSession | None = None
        by_name = {METASTORE: self._add_partition}
        files = source, self._partition_by
        journal = Journal(leadership, output_here(uri, name), name, commit, by_name, flat=mergeable, files=files)
        self._letters = RowWriter(journal.renames, "json")
        chosen = {**(_ONE_FILE if mergeable else {}), **(options or {})}
        self._rows = RowWriter(journal.renames, source, self._partition_by, chosen)
        self._open(journal)

    def write(self, batch: "DataFrame", batch_id: int, dead: "DataFrame | None" = None) -> bool:
        """Write a batch and publish it.

        A function may write a batch in several parts. Each of them appears once, under a number of its own, if the
        function writes the same parts in the same order when the batch is done again. If a part was not written, the
        next one has to be the same rows again.

        Args:
            batch: its rows. They are evaluated exactly once, even if it was published before: Spark's state needs it.
            batch_id: number that Spark gave to the batch. It is the one that readers see, unless the query was put
                back by ``ha checkpoint rewind --outputs keep``: then readers see numbers that go on after the newest
                one.
            dead: records of the batch that could not be processed. They appear as JSON in ``_dead_letters``, decided
                by the same rename. :class:`ha.spark.DeadLetters` passes them.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            AlreadyExists: this job did not put the batch there.
            Fenced: another leader has taken over. Whatever was published, that leader publishes as well.
            ForeignBatch: the output has batches of another query, or of a later state of this one.
            InvalidSettings: there are dead letters, and a partition commit or files to be merged; or the query has no
                name, or a checkpoint elsewhere; or other rows of the batch were not written before.
            NotLeader: the job is being stopped with a savepoint.
            OutputLost: files of the batch are gone.
            StoreError: it is not known whether the batch was published; Spark will do it again.
        """
        with misses.noting(self._name, self.home, batch, batch_id):
            if dead is not None and (self._commit is not None or self._mergeable):
                what = "is mergeable" if self._mergeable else "has a partition commit"
                raise InvalidSettings(f"Output {self._name!r} {what}, so it can have no dead letters.")
            if self._commit is not None:
                self._session = batch.sparkSession
                self._commit.check_zone(self._session.conf.get("spark.sql.session.timeZone") or "")
            return self._once(batch, batch_id, lambda rows, origin: self._publish(rows, origin, dead))

    def _check(self, origin: Batch) -> None:
        if self._commit is not None and origin.moment is None:
            raise InvalidSettings("A partition commit needs batches of a streaming query: use foreachBatch.")

    def _publish(self, rows: "DataFrame", origin: Batch, dead: "DataFrame | None" = None) -> bool:
        if self._journal.asks_for_types:
            self._journal.expect(types_of(rows.schema.jsonValue(), self._partition_by))
        attempt = uuid.uuid4().hex  # a rename that is executed late must not move a half-written next try
        folder = self._journal.rows(attempt)
        if self._mergeable:  # one file for each partition
            rows = rows.repartition(*self._partition_by) if self._partition_by else rows.repartition(1)
        with REPORTS.timed(self._name, WRITE):
            alive = layout.ALIVE if dead is not None and not self._partition_by else ""
            letters = self._letters.write(dead, folder, layout.DEAD) if dead is not None else Record({})
            wrote = letters.joined(self._rows.write(rows, folder, alive))
        return self._journal.publish(attempt, origin, wrote)

    def commit_pending(self) -> int:
        """Commit every pending partition at the end of the input, whatever its trigger says; return their number.

        Call it when the query has ended, after ``awaitTermination()`` of one with ``trigger(availableNow=True)``.

        Raises:
            Fenced: another leader has taken over.
            OutputLost: files of a batch are gone.
            StoreError: a store did not answer; call it again.
        """
        return self._journal.commit_pending()

    def _add_partition(self, partition: CommittedPartition) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415  # only this policy needs it

        session = self._session or SparkSession.getActiveSession()
        if session is None or self._commit is None:
            raise InvalidSettings("The policy metastore needs a Spark session on this thread.")
        add_partition(session, self._commit.table, partition)


def add_partition(spark: "SparkSession", table: str, partition: CommittedPartition) -> None:
    """Add every batch of a partition to a table; what is there already stays as it is."""
    columns = [each.name for each in spark.catalog.listColumns(table) if each.isPartition]
    expected = [*partition.values, _COLUMN]
    if [each.lower() for each in columns] != [each.lower() for each in expected]:
        raise InvalidSettings(
            f"Table {table} is partitioned by {', '.join(columns) or 'nothing'}, but the output has "
            f"{', '.join(expected)}: create it with PARTITIONED BY ({', '.join(expected)})."
        )
    values = ", ".join(f"{_quoted(name)}={_text(value)}" for name, value in partition.values.items())
    added = " ".join(
        f"PARTITION ({values}, {_COLUMN}={batch}) LOCATION {_text(f'{partition.uri}/{_COLUMN}={batch}')}"
        for batch in partition.batches
    )
    spark.sql(f"ALTER TABLE {table} ADD IF NOT EXISTS {added}")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
