"""Output: a streaming query's output, each batch exactly once, even if a replaced driver goes on writing.

    <leader directory>/out/<output>/staged/<attempt>/rows   Spark writes here
    <leader directory>/out/<output>/ready/<batch id>/rows   one rename: these are the batch's rows, for ever
    <uri>/[<column>=<value>/...]batch=<batch id>            one rename for each partition: it appears as a whole

The second line decides. A driver that does the batch again finds it there, drops its own rows, and moves the rest of
what was decided. So the partitions of one batch never come from two tries. Decided batches travel with the leader
directory to the successor. A fenced driver decides nothing: Spark brings ``staged`` back to life, but it never writes
to ``ready``, which is created without parents. The newest batch's folder stays, empty, and says how far the query has
come. See decision 17.
"""

import hashlib
import logging
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from ha.leadership.fenced_rename import ATTEMPTS, FencedRename, make_parents
from ha.leadership.leadership import Leadership
from leader.layout.names import OUT, check_word
from store.errors import AlreadyExists, NotEmpty, NotFound, StoreError, Unknown

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
            StoreError: the store did not answer.
        """
        self._source, self._partition_by = source, tuple(partition_by)
        self._options = {**_WRITER, **(options or {})}
        self._name = check_word(name, "an output")
        self._renames = FencedRename(leadership, uri)
        # Named after its target: an output that is moved begins anew, and two outputs never decide for each other.
        folder = f"{OUT}/{name}-{hashlib.sha256(self._renames.outside.encode()).hexdigest()[:12]}"
        self._staged = leadership.path(f"{folder}/staged")
        self._home = f"{self._renames.inside}/{folder}"
        self._newest = -1
        self._settled = False
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Write a batch, as :meth:`write` does; for ``foreachBatch``."""
        self.write(batch, batch_id)

    def write(self, batch: "DataFrame", batch_id: int) -> bool:
        """Write a batch and publish it.

        Args:
            batch: its rows. They are evaluated exactly once, even if it was published before, because Spark needs that
                for its state.
            batch_id: number that Spark gave to the batch.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            AlreadyExists: the output has such a batch, and this job did not put it there.
            Fenced: another leader has taken over. Whatever was published, that leader publishes as well.
            StoreError: it is not known whether the batch was published; Spark will do it again.
        """
        attempt = uuid.uuid4().hex  # a rename that is executed late must not move a half-written next try
        writer = batch.write.format(self._source).options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        writer.save(f"{self._staged}/{attempt}/rows")
        if not self._settled:
            self._settle(attempt)
        self._settled = False  # until all of it has succeeded
        published = self._publish(f"{self._home}/staged/{attempt}", batch_id)
        self._settled = True
        return published

    def close(self) -> None:
        """Let go of the file system."""
        self._renames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _publish(self, staged: str, batch_id: int) -> bool:
        before, new = self._newest, batch_id > self._newest
        if batch_id < before:
            _log.warning(
                "Batch %d of output %s is dropped: it has come to batch %d. If the query has begun anew, give its "
                "output another directory.", batch_id, self._name, before,
            )  # fmt: skip
        if not new or not self._renames.move(staged, self._ready(batch_id)):
            with suppress(StoreError):  # the next driver drops it
                self._renames.remove(staged)
        if new:
            self._newest = batch_id
            self._finish(batch_id)
            self._empty(self._ready(before), before)
        return new

    def _settle(self, attempt: str = "") -> None:
        """Drop everything that is staged, except one attempt, and complete the decided batches."""
        renames = self._renames
        renames.do(lambda files: make_parents(files, renames.outside))
        renames.make_folders(f"{renames.inside}/{OUT}", self._home, f"{self._home}/staged", f"{self._home}/ready")
        renames.sweep()
        for entry in renames.list(f"{self._home}/staged"):
            if entry.name != attempt:  # so that a late rename of it finds nothing
                renames.remove(f"{self._home}/staged/{entry.name}")
        decided = sorted(int(entry.name) for entry in renames.list(f"{self._home}/ready") if entry.name.isdecimal())
        for batch_id in decided:
            if batch_id == decided[-1]:
                # A NameNode may forget what it shows. Once it acknowledges a new folder below this one, it cannot.
                renames.make_folders(f"{self._ready(batch_id)}/{uuid.uuid4().hex}")
                self._finish(batch_id)
            else:
                self._empty(self._ready(batch_id), batch_id)
        self._newest = max([self._newest, *decided])
        self._settled = True

    def _finish(self, batch_id: int) -> None:
        """Move the rest of a decided batch to its place; its empty folder stays."""
        for entry in self._renames.list(self._ready(batch_id)):
            self._empty(f"{self._ready(batch_id)}/{entry.name}", batch_id)

    def _empty(self, folder: str, batch_id: int) -> None:
        """Move all rows below a folder to their places, and delete the folder once it is empty.

        Only an empty folder is deleted, so nothing is lost if a move turns out not to have happened.
        """
        if batch_id < 0:
            return
        for _ in range(ATTEMPTS):
            if self._move_rows(folder, batch_id):
                return
            try:
                self._renames.do(lambda files: files.delete(folder))
            except NotEmpty:
                continue
            except NotFound:
                self._renames.check()
            return
        raise Unknown(f"Batch {batch_id} of output {self._name!r} could not be moved to its place: write it again.")

    def _move_rows(self, folder: str, batch_id: int) -> bool:
        """Move what is below a folder; returns whether the folder itself was moved, because it contains files."""
        entries = self._renames.list(folder)
        if all(entry.is_directory for entry in entries):
            for entry in entries:
                self._empty(f"{folder}/{entry.name}", batch_id)
            return False
        partition = folder.removeprefix(f"{self._ready(batch_id)}/rows")
        target = f"{self._renames.outside}{partition}/batch={batch_id}"
        try:
            moved = self._renames.move(folder, target)
        except NotFound:
            return False  # it was moved after all
        if not moved:
            raise AlreadyExists(
                f"{target!r} exists already, and this job has not put it there: "
                "give the output a directory of its own, or move that one away."
            )
        return True

    def _ready(self, batch_id: int) -> str:
        return f"{self._home}/ready/{batch_id}"
