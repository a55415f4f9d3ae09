"""Output: a streaming query's output, each batch exactly once, even if a replaced driver goes on writing.

Spark writes a batch below the leader directory. One rename decides it, with a record of its files. Then each of its
partitions is moved to its place by one rename, and a last rename says that the batch is complete: see
:mod:`ha.outputs.layout`.

A driver that does the batch again finds it decided, drops its own rows, and moves the rest of what was decided. So the
partitions of one batch never come from two tries. The journal travels with the leader directory to the successor. A
fenced driver decides nothing: Spark brings ``staged`` back to life, but it never writes to ``ready``, which is created
without parents. See decisions 17 and 51.
"""

import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from ha.leadership.fenced_rename import FencedRename, make_parents
from ha.leadership.lead import supervised
from ha.leadership.leadership import Leadership
from ha.metrics.output_report import DECIDE, MOVE, RECORD, REPORTS, WRITE, path_beside
from ha.outputs import layout
from ha.outputs.moving import Moved, Moving
from ha.outputs.record import TARGET, Record, Target
from ha.rewind.completing import settle
from leader.errors import NotLeader, OutputLost
from leader.layout.names import OUT, check_word
from leader.layout.packed_names import written
from store.errors import AlreadyExists, NotFound, StoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""The rename shows a batch at once, so Spark's own marker and its second move of every file are useless."""

_log = logging.getLogger("ha")


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

        Raises:
            AlreadyExists: the output has a batch that this job decided otherwise.
            Fenced: another leader has taken over.
            InvalidName: the output cannot have that name.
            InvalidSettings: the output is in another file system, so no rename leads there.
            OutputLost: files of a batch that was decided are gone.
            StoreError: the store did not answer.
        """
        self._source, self._partition_by = source, tuple(partition_by)
        self._options = {**_WRITER, **(options or {})}
        self._name = check_word(name, "an output")
        self._settling = leadership.settling
        self._renames = FencedRename(leadership, uri)
        folder = layout.home(name, self._renames.outside)
        self._staged = leadership.path(f"{folder}/{layout.STAGED}")
        self._moving = Moving(self._renames, f"{self._renames.inside}/{folder}", name)
        self._target = Target(f"{urlsplit(self._renames.root).path.rstrip('/')}/{self._renames.outside}")
        self._newest = -1
        self._shifts: list[str] = []
        self._settled = False
        settle(leadership)  # an earlier leader may have begun to put the query back
        if supervised(leadership.job) and (path := os.environ.get("HA_QUERIES")):
            REPORTS.path = path_beside(Path(path))
        try:
            self._settle()
        except BaseException:
            self.close()
            raise
        finally:
            REPORTS.show()

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write a batch, as :meth:`write` does; for ``foreachBatch``."""
        self.write(batch, batch_id)

    def write(self, batch: "DataFrame", batch_id: int) -> bool:
        """Write a batch and publish it.

        Args:
            batch: its rows. They are evaluated exactly once, even if it was published before, because Spark needs that
                for its state.
            batch_id: number that Spark gave to the batch. It is the one that readers see, unless the query was put
                back by ``ha rewind --outputs keep``: then readers see numbers that go on after the newest one.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            AlreadyExists: the output has such a batch, and this job did not put it there.
            Fenced: another leader has taken over. Whatever was published, that leader publishes as well.
            NotLeader: the job is being stopped with a savepoint; whoever starts from it does this batch.
            OutputLost: files of the batch are gone.
            StoreError: it is not known whether the batch was published; Spark will do it again.
        """
        if self._settling.is_set():
            raise NotLeader(f"Batch {batch_id} of output {self._name!r} is not begun: the job is being stopped.")
        attempt = uuid.uuid4().hex  # a rename that is executed late must not move a half-written next try
        writer = batch.write.format(self._source).options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        with REPORTS.timed(self._name, WRITE):
            writer.save(f"{self._staged}/{attempt}/{layout.ROWS}")
        try:
            if not self._settled:
                self._settle(attempt)
            self._settled = False  # until all of it has succeeded
            number = batch_id + layout.shift(batch_id, self._shifts)
            published = self._publish(self._moving.at(f"{layout.STAGED}/{attempt}"), number)
            self._settled = True
        finally:
            REPORTS.show()
        return published

    def close(self) -> None:
        """Let go of the file system."""
        self._renames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _publish(self, staged: str, batch_id: int) -> bool:
        newest, renames = self._newest, self._renames
        if batch_id < newest:
            _log.warning(
                "Batch %d of output %s is dropped: it has come to batch %d. If the query has begun anew, give its "
                "output another directory.", batch_id, self._name, newest,
            )  # fmt: skip
        if batch_id <= newest:
            with suppress(StoreError):  # the next driver drops it
                renames.remove(staged)
            return False
        with REPORTS.timed(self._name, RECORD):
            record = self._stock(staged, batch_id)
        with REPORTS.timed(self._name, DECIDE):
            if not renames.move(staged, self._moving.at(layout.ready(batch_id))):
                raise AlreadyExists(f"Batch {batch_id} of output {self._name!r} was decided meanwhile.")
        self._newest = batch_id
        with REPORTS.timed(self._name, MOVE):
            self._counted(lambda: self._moving.move(batch_id, record))
        return True

    def _stock(self, staged: str, batch_id: int) -> Record:
        try:
            return self._moving.take_stock(staged)
        except NotFound as error:
            self._renames.check()  # or all of it has gone with the leader directory
            raise NotFound(
                f"What Spark has written of batch {batch_id} of output {self._name!r} is gone: does a clean-up delete "
                "below the leader directory? Nothing was decided, so the query does the batch again."
            ) from error

    def _counted(self, move: Callable[[], Moved]) -> None:
        """Move a batch, and count what becomes of its files."""
        try:
            moved = move()
        except OutputLost as error:
            lost = max(1, error.lost)  # the record itself may be what is lost
            REPORTS.counted(self._name, lost, 0, 0, lost)
            raise
        REPORTS.counted(self._name, moved.created, moved.renamed, moved.ignored, moved.failed)

    def _settle(self, attempt: str = "") -> None:
        """Drop everything that is staged, except one attempt, and complete the decided batches."""
        renames, at = self._renames, self._moving.at
        renames.do(lambda files: make_parents(files, renames.outside))
        renames.make_folders(f"{renames.inside}/{OUT}", at("").rstrip("/"))
        names = [entry.name for entry in renames.list(at("").rstrip("/"))]
        self._shifts = [each for each in names if each.startswith(layout.SHIFT)]
        renames.make_folders(at(layout.STAGED), at(layout.READY))
        renames.sweep()
        for entry in renames.list(at(layout.STAGED)):
            if entry.name != attempt:  # so that a late rename of it finds nothing
                renames.remove(at(f"{layout.STAGED}/{entry.name}"))
        if decided := self._ids(layout.READY):
            renames.acknowledge()  # a NameNode may forget a decision that it shows
            decided = self._ids(layout.READY)
        if layout.DONE not in names:
            for batch_id in decided:  # by a version that kept no records
                self._moving.record_anew(batch_id)
            renames.make_folders(at(layout.DONE))
        self._moving.keep(at("").rstrip("/"), written(TARGET, self._target))
        for batch_id in decided:
            self._counted(lambda batch_id=batch_id: self._moving.finish(batch_id))  # type: ignore[misc]
        self._newest = max(self._newest, self._newest_done())
        self._settled = True

    def _newest_done(self) -> int:
        """Return the newest complete batch; a thousand that has just begun may be empty."""
        for bucket in reversed(self._ids(layout.DONE)):
            if done := self._ids(f"{layout.DONE}/{bucket}"):
                return done[-1]
        return -1

    def _ids(self, folder: str) -> list[int]:
        return layout.ids([entry.name for entry in self._renames.list(self._moving.at(folder))])
