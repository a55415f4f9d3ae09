"""A streaming query's output, each batch exactly once, also if a driver that was replaced goes on writing.

    <leader directory>/out/<output>/staged/<attempt>/rows   Spark writes here
    <leader directory>/out/<output>/ready/<batch id>/rows   one rename: these are the batch's rows, from now on for ever
    <uri>/[<column>=<value>/...]batch=<batch id>            one rename for each partition: it appears whole

The second line decides: who does that batch again finds it, drops its own rows, and moves what is there still. So the
partitions of one batch never come from two tries. What is decided travels with the leader directory to the successor,
and a driver that was fenced decides nothing: Spark brings ``staged`` back to life, and never writes to ``ready``, which
is made without parents. The newest batch's folder stays, empty, and says how far the query has come. See decision 17.
"""

import hashlib
import logging
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from ha.leadership import Leadership
from ha.moves import ATTEMPTS, Moves, make_parents
from leader.names import OUT, check_word
from store.errors import AlreadyExists, NotEmpty, NotFound, StoreError, Unknown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRITER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""The rename makes a batch visible at once, so Spark's own marker and its second move of every file are of no use."""

_log = logging.getLogger("ha")


class Output:
    """A directory that batches are published to, one per query; give it to ``foreachBatch`` as it is.

    It does NOT compare: if a batch was published before, what is there stays, and what was written now is dropped. And
    several partitions of one batch appear one after the other.
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
        """Make the directories, finish what an earlier driver had decided, drop what it had not.

        Args:
            leadership: of the job.
            uri: where batches appear as ``batch=<id>``; in the same file system as the job, and of one query alone. A
                query that begins anew, without its checkpoint, counts from 0 again and needs another.
            name: what the output is called in the leader directory and in messages; it need not be unique.
            source: Spark's name of the file format: parquet, json, text, ...
            partition_by: columns; batches then appear below ``<column>=<value>/...``, each partition whole.
            options: for Spark's writer.

        Raises:
            AlreadyExists: there is a batch in the output that this job has decided otherwise.
            Fenced: another leader has taken over.
            InvalidName: the name cannot be one.
            InvalidSettings: the output is in another file system: no rename leads there.
            StoreError: the store did not answer.
        """
        self._source, self._partition_by = source, tuple(partition_by)
        self._options = {**_WRITER, **(options or {})}
        self._name = check_word(name, "an output")
        self._moves = Moves(leadership, uri)
        # By what it decides about: an output that is moved or renamed begins anew, two never decide for each other.
        folder = f"{OUT}/{name}-{hashlib.sha256(self._moves.outside.encode()).hexdigest()[:12]}"
        self._staged = leadership.path(f"{folder}/staged")
        self._home = f"{self._moves.inside}/{folder}"
        self._newest = -1
        self._settled = False
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """What ``foreachBatch`` calls; as :meth:`write`."""
        self.write(batch, batch_id)

    def write(self, batch: "DataFrame", batch_id: int) -> bool:
        """Write a batch and publish it; returns whether it was published now, and not before.

        Args:
            batch: evaluated exactly once, also if it was published before: Spark counts on that for its state.
            batch_id: as Spark gave it.

        Raises:
            AlreadyExists: there is such a batch in the output, and not by this job.
            Fenced: another leader has taken over; nothing was published that it will not publish, too.
            StoreError: it stayed unknown whether it was published; Spark will do the batch again.
        """
        attempt = uuid.uuid4().hex  # a rename that is executed late must not catch the next try half-written
        writer = batch.write.format(self._source).options(**self._options)
        if self._partition_by:
            writer = writer.partitionBy(*self._partition_by)
        writer.save(f"{self._staged}/{attempt}/rows")
        if not self._settled:
            self._settle(attempt)
        self._settled = False  # until all has gone well
        published = self._publish(f"{self._home}/staged/{attempt}", batch_id)
        self._settled = True
        return published

    def close(self) -> None:
        """Let go of the file system."""
        self._moves.close()

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
        if not new or not self._moves.move(staged, self._ready(batch_id)):
            with suppress(StoreError):  # the next driver drops it
                self._moves.remove(staged)
        if new:
            self._newest = batch_id
            self._finish(batch_id)
            self._empty(self._ready(before), before)
        return new

    def _settle(self, attempt: str = "") -> None:
        """Drop what is staged but for one attempt, and finish what is decided."""
        moves = self._moves
        moves.do(lambda files: make_parents(files, moves.outside))
        moves.make_folders(f"{moves.inside}/{OUT}", self._home, f"{self._home}/staged", f"{self._home}/ready")
        moves.sweep()
        for entry in moves.list(f"{self._home}/staged"):
            if entry.name != attempt:  # gone for good, so that no rename of it that is late can be executed
                moves.remove(f"{self._home}/staged/{entry.name}")
        decided = sorted(int(entry.name) for entry in moves.list(f"{self._home}/ready") if entry.name.isdecimal())
        for batch_id in decided:
            if batch_id == decided[-1]:
                # What is only seen may be forgotten again; a folder that is acknowledged below it makes it sure.
                moves.make_folders(f"{self._ready(batch_id)}/{uuid.uuid4().hex}")
                self._finish(batch_id)
            else:
                self._empty(self._ready(batch_id), batch_id)
        self._newest = max([self._newest, *decided])
        self._settled = True

    def _finish(self, batch_id: int) -> None:
        """Move what is left of a decided batch to its place; its empty folder stays."""
        for entry in self._moves.list(self._ready(batch_id)):
            self._empty(f"{self._ready(batch_id)}/{entry.name}", batch_id)

    def _empty(self, folder: str, batch_id: int) -> None:
        """Move all rows below a folder to their places, and delete it when nothing is left there.

        It is deleted as an empty one, or not at all: so nothing is lost if what was moved turns out not to be.
        """
        if batch_id < 0:
            return
        for _ in range(ATTEMPTS):
            if self._move_rows(folder, batch_id):
                return
            try:
                self._moves.do(lambda files: files.delete(folder))
            except NotEmpty:
                continue
            except NotFound:
                self._moves.check()
            return
        raise Unknown(f"Batch {batch_id} of output {self._name!r} could not be moved to its place: do it again.")

    def _move_rows(self, folder: str, batch_id: int) -> bool:
        """Move what is below a folder; returns whether the folder itself was moved, because it holds files."""
        entries = self._moves.list(folder)
        if all(entry.is_directory for entry in entries):
            for entry in entries:
                self._empty(f"{folder}/{entry.name}", batch_id)
            return False
        partition = folder.removeprefix(f"{self._ready(batch_id)}/rows")
        target = f"{self._moves.outside}{partition}/batch={batch_id}"
        try:
            moved = self._moves.move(folder, target)
        except NotFound:
            return False  # it was moved after all
        if not moved:
            raise AlreadyExists(
                f"There is {target!r} already, and this job has not put it there: "
                "give the output a directory of its own, or move that away."
            )
        return True

    def _ready(self, batch_id: int) -> str:
        return f"{self._home}/ready/{batch_id}"
