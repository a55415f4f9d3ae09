"""HaWriter: writes one batch in the tasks, and commits it in a process of the driver's host.

A task that is repeated, or that runs twice, writes files of other names. Spark takes one message from each task, and
only the files in these belong to the batch: the journal deletes the others, and a task that still runs adds none.

The process that commits is Spark's. It serves many batches, and another one may take its place at any time: so it keeps
a journal, which notices that. Spark also calls ``abort`` after a failed ``commit``, which may have decided the batch.
"""

import logging
import os
import posixpath
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ha.hook.misses import QUERY_ID
from ha.outputs import layout
from ha.outputs.batch import offsets_of, planned, query_id
from ha.outputs.columns import TYPED, Types
from ha.outputs.journal import Journal, staged_below
from ha.outputs.lines import Line
from ha.outputs.record import Record
from ha.program.output_report import REPORTS, path_beside
from ha.spark.sink.leader_home import LeaderHome
from ha.spark.sink.options import SinkOptions
from leader.errors import NotLeader
from store.errors import StoreError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_log = logging.getLogger("ha")

_journals: dict[tuple[LeaderHome, SinkOptions], Journal] = {}
"""The journal of this process; of another leader or output it would be another process's turn."""


class Written(WriterCommitMessage):
    """What a task has written.

    Attributes:
        attempt: of the batch.
        query: Spark's id of the query.
        partitions: by the partition's path, of each file its bytes.
        rows: by the partition's path, their number.
    """

    def __init__(self, attempt: str, query: str, partitions: dict[str, dict[str, int]], rows: dict[str, int]) -> None:
        """Report it to the driver."""
        self.attempt, self.query, self.partitions, self.rows = attempt, query, partitions, rows


class HaWriter(DataSourceStreamArrowWriter):
    """One is made for each batch, on the driver, and pickled for the tasks; another one commits."""

    def __init__(self, home: LeaderHome, options: SinkOptions, types: Types | None = None) -> None:
        self._home, self._options = home, options
        self._types = types or {} if options.format in TYPED else {}
        self._attempt = uuid.uuid4().hex
        staged = staged_below(home.directory, options.path, options.name)
        self._folder = staged.split("/")[-2]
        self._rows = f"{staged}/{self._attempt}/{layout.ROWS}"

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        """Write the rows of one task."""
        from ha.spark.sink.part_files import PartFiles  # noqa: PLC0415  # the process that commits needs no Arrow

        task = TaskContext.get()
        files = PartFiles(self._rows, self._options, task.partitionId() if task is not None else 0)
        for batch in iterator:
            files.add(batch)
        query = task.getLocalProperty(QUERY_ID) if task is not None else None
        return Written(self._attempt, query or "", files.finish(), files.rows)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish the batch, if it was not published before; the errors are those of :meth:`ha.spark.Output.write`."""
        written, journal = _of(messages), self._journal()
        query = next((each.query for each in written if each.query), "")
        checkpoint = f"{journal.renames.inside}/{self._options.checkpoint}"
        line = Line(query or query_id(journal.renames, checkpoint), posixpath.basename(checkpoint))
        batch = replace(planned(line, batchId, offsets_of(journal.renames, checkpoint, batchId)), every=True)
        journal.expect(self._types)
        journal.publish(_attempt_of(written) or self._attempt, batch, _record_of(written))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop what was written, unless the batch was decided; what cannot be dropped the next commit finds."""
        if not (attempt := _attempt_of(_of(messages))):
            return  # no task has told its place
        try:
            if self._journal().abandon(attempt, batchId):
                _log.warning(
                    "Batch %d of output %s has failed after it was decided: the query's next start completes it.",
                    batchId, self._options.name,
                )  # fmt: skip
        except (StoreError, NotLeader) as error:  # the error that Spark aborts for is the one to see
            _log.warning("What was written of batch %d is dropped later: %s", batchId, error)

    def _journal(self) -> Journal:
        key, options = (self._home, self._options), self._options
        if key not in _journals:
            while _journals:
                _journals.popitem()[1].close()
            if path := os.environ.get("HA_QUERIES"):
                REPORTS.resume(path_beside(Path(path), self._folder))
            files = options.format, options.partition_by
            _journals[key] = Journal(self._home, options.path, options.name, options.commit, alone=False, files=files)
        return _journals[key]


def _of(messages: list[WriterCommitMessage | None]) -> list[Written]:
    return [each for each in messages if isinstance(each, Written)]


def _attempt_of(written: list[Written]) -> str:
    attempts = {each.attempt for each in written}
    assert len(attempts) <= 1, "the tasks of a batch have the same writer"
    return next(iter(attempts), "")


def _record_of(written: list[Written]) -> Record:
    partitions: dict[str, dict[str, int]] = {}
    rows: Counter[str] = Counter()
    for each in written:
        rows.update(each.rows)
        for partition, files in each.partitions.items():
            partitions.setdefault(partition, {}).update(files)
    return Record(dict(sorted(partitions.items())), rows=dict(sorted(rows.items())))
