"""Output: a streaming query's output, each batch exactly once, even if a replaced driver goes on writing.

Spark writes a batch below the leader directory, and :class:`ha.outputs.journal.Journal` publishes it. So the partitions
of one batch never come from two tries. The journal travels with the leader directory to the successor. A fenced driver
decides nothing: Spark brings ``staged`` back to life, but it never writes to ``ready``, which is created without
parents. See decisions 17 and 51.
"""

import os
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ha.leadership.lead import supervised
from ha.leadership.leadership import Leadership
from ha.leadership.throw_away import output_here
from ha.metrics.output_report import REPORTS, WRITE, path_beside
from ha.outputs import layout
from ha.outputs.journal import Journal
from ha.outputs.partition_commit import METASTORE, CommittedPartition, PartitionCommit
from ha.rewind.completing import settle
from ha.spark.batch_moment import BatchMoments
from leader.errors import InvalidSettings, NotLeader
from leader.layout.names import check_word

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WRITER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""The rename shows a batch at once, so Spark's own marker and its second move of every file are useless."""


MERGEABLE = ("json", "text", "parquet", "orc")
"""Formats in which files behind each other are a file; two of them need a footer more."""

_ONE_FILE = {"maxRecordsPerFile": "0", "orc.block.size": str(64 << 20)}
"""Options of mergeable outputs. HDFS puts no file behind one of smaller blocks, and ORC's own have 256 MiB, twice those
of a file that HDFS makes by default; 64 MiB are a stripe."""


class RowWriter:
    """Has Spark write the rows of batches."""

    def __init__(self, source: str, partition_by: Sequence[str], options: Mapping[str, str] | None) -> None:
        """Write files of this format of Spark's, with these columns as partitions, and these options of the writer."""
        self._source, self._partition_by = source, tuple(partition_by)
        self._options = {**_WRITER, **(options or {})}

    def write(self, batch: "DataFrame", uri: str, *, beside: bool = False) -> None:
        """Write a batch to a directory that is not there yet, or, ``beside`` others, to one that is."""
        writer = batch.write.format(self._source).options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        if beside:
            writer = writer.mode("append")
        writer.save(uri)


def report(leadership: Leadership) -> None:
    """Have the outputs of this process report to its sidecar, if it has one."""
    if supervised(leadership.job) and (path := os.environ.get("HA_QUERIES")):
        REPORTS.path = path_beside(Path(path))


class Output:
    """A directory to which a query publishes its batches; give it to ``foreachBatch`` as it is.

    It does NOT compare rows: if a batch was published before, that stays, and the rows written now are dropped. Several
    partitions of one batch appear one after the other.
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
                one query. A query that begins anew, without its checkpoint, counts from 0 and needs another directory.
            name: of the output, in the leader directory and in messages; need not be unique.
            source: Spark's name of the file format: parquet, json, text, ...
            partition_by: columns. Batches then appear below ``<column>=<value>/...``, each partition as a whole.
            options: for Spark's writer.
            commit: when a partition is finished, and how that is told; default: never.
            mergeable: whether a partition of a batch is one file, ``batch-<id>.json``, and lies beside those of other
                batches, so that `ha output merge` can make one of many. For json, text, parquet and orc; chosen once.

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
        self._letters = RowWriter("json", (), None)
        self._rows = RowWriter(source, self._partition_by, {**(_ONE_FILE if mergeable else {}), **(options or {})})
        self._name = check_word(name, "an output")
        if mergeable and source not in MERGEABLE:
            raise InvalidSettings(
                f"Output {name!r} cannot be mergeable: files of {source} behind each other are no such file. "
                f"Choose {', '.join(MERGEABLE)}, or leave `mergeable` out."
            )
        if mergeable and commit is not None:
            raise InvalidSettings(f"Output {name!r} has a partition commit, so it cannot be mergeable.")
        self._mergeable = mergeable
        self._settling = leadership.settling
        if commit is not None and not self._partition_by:
            raise InvalidSettings(f"Output {name!r} has no partitions to commit: give partition_by, too.")
        self._commit = commit
        self._session: SparkSession | None = None
        by_name = {METASTORE: self._add_partition}
        self._journal = Journal(leadership, output_here(uri, name), name, commit, by_name, flat=mergeable)
        self._moments = BatchMoments(self._journal.renames)
        settle(leadership)  # an earlier leader may have begun to put the query back
        report(leadership)
        try:
            self._journal.settle()
        except BaseException:
            self.close()
            raise
        finally:
            REPORTS.show()

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write a batch, as :meth:`write` does; for ``foreachBatch``."""
        self.write(batch, batch_id)

    @property
    def name(self) -> str:
        """Of the output."""
        return self._name

    def write(self, batch: "DataFrame", batch_id: int, dead: "DataFrame | None" = None) -> bool:
        """Write a batch and publish it.

        Args:
            batch: its rows. They are evaluated exactly once, even if it was published before, because Spark needs that
                for its state.
            batch_id: number that Spark gave to the batch. It is the one that readers see, unless the query was put
                back by ``ha rewind --outputs keep``: then readers see numbers that go on after the newest one.
            dead: records of the batch that could not be processed. They appear as JSON in ``_dead_letters``, decided
                by the same rename. :class:`ha.spark.DeadLetters` passes them.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            AlreadyExists: the output has such a batch, and this job did not put it there.
            Fenced: another leader has taken over. Whatever was published, that leader publishes as well.
            InvalidSettings: there are dead letters, and a partition commit or files to be merged.
            NotLeader: the job is being stopped with a savepoint; whoever starts from it does this batch.
            OutputLost: files of the batch are gone.
            StoreError: it is not known whether the batch was published; Spark will do it again.
        """
        if dead is not None and (self._commit is not None or self._mergeable):
            what = "is mergeable" if self._mergeable else "has a partition commit"
            raise InvalidSettings(f"Output {self._name!r} {what}, so it can have no dead letters.")
        if self._settling.is_set():
            raise NotLeader(f"Batch {batch_id} of output {self._name!r} is not begun: the job is being stopped.")
        attempt = uuid.uuid4().hex  # a rename that is executed late must not move a half-written next try
        rows = f"{self._journal.staged}/{attempt}/{layout.ROWS}"
        if self._mergeable:  # one file for each partition
            batch = batch.repartition(*self._partition_by) if self._partition_by else batch.repartition(1)
        with REPORTS.timed(self._name, WRITE):
            if dead is not None:
                self._letters.write(dead, f"{rows}/{layout.DEAD}")
                rows = rows if self._partition_by else f"{rows}/{layout.ALIVE}"
            self._rows.write(batch, rows, beside=dead is not None)
        if self._commit is None:
            return self._journal.publish(attempt, batch_id)
        self._session = batch.sparkSession
        moment = cache(lambda: self._moments.read(batch, batch_id))
        return self._journal.publish(attempt, batch_id, moment=moment)

    def commit_pending(self) -> int:
        """Commit every partition that is pending, whatever its trigger says; for the end of the input.

        Call it when the query has ended, after ``awaitTermination()`` of one with ``trigger(availableNow=True)``.

        Returns:
            How many were committed.

        Raises:
            Fenced: another leader has taken over.
            OutputLost: files of a batch are gone.
            StoreError: a store did not answer; call it again.
        """
        return self._journal.commit_pending()

    def _add_partition(self, partition: CommittedPartition) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415  # only this policy needs it

        from ha.spark.metastore import add_partition  # noqa: PLC0415

        session = self._session or SparkSession.getActiveSession()
        if session is None or self._commit is None:
            raise InvalidSettings("The policy metastore needs a Spark session on this thread.")
        add_partition(session, self._commit.table, partition)

    def close(self) -> None:
        """Let go of the file system."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
