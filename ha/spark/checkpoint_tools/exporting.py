"""Export: copies the closure of one batch to a directory for a Spark without Hybrid HA, even while the query runs."""

import hashlib
import posixpath
from contextlib import suppress
from functools import partial
from typing import Any

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.inputs import inputs
from ha.checkpoints.trees import Tree, check_bulk
from ha.checkpoints.verify import advice
from ha.config.sources import load
from ha.config.stores import Stores
from ha.spark.checkpoint_tools.copying import WORKERS, Staging, Told
from ha.spark.checkpoint_tools.importing import CopiedCheckpoint
from ha.spark.stored.commit_log import newest_batch, no_checkpoint
from ha.spark.stored.locations import METADATA, check_query, relocated
from leader.errors import Fenced
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound, Unknown
from store.open import open_files

ROUNDS = 10  # tries to get a consistent copy; each begins with the newest batch, and keeps the files that are the same

BUSY = (NotFound, Fenced, Conflict, Unknown)
"""A new leader has renamed the directory, or Spark has renamed a file, or deleted an old one: look again."""

CALL_TIMEOUT_S = 20.0  # time for the call that looks whether the target exists


def export_checkpoint(
    job: str, query: str, uri: str, *, batch: int | None = None, told: Told | None = None, **settings: Any
) -> CopiedCheckpoint:
    """Copy what a restart after a batch needs to a new directory: by default, after the newest one.

    The job may run and change its leader meanwhile. The copy is not visible before it is complete. To continue an
    interrupted copy, call this again. It takes no lease, and only needs to read the job's files.

    Args:
        job: name of the job.
        query: name of the query.
        uri: of the new directory: ``file://``, ``hdfs://`` or ``webhdfs://``. Missing parents are created.
        batch: the batch; its commit must still be retained.
        told: called with a :class:`ha.spark.checkpoint_tools.copying.CopyProgress` at every step, from any thread.
        settings: as for :func:`ha.connect`.

    Raises:
        AlreadyExists: there is something at the URI.
        Conflict: the query changed its checkpoint faster than it could be copied.
        Invalid: the query has not committed the batch, or any; a file that it needs is missing; or it is no URI.
        InvalidName: the job or the query cannot have that name.
        NoLeader: there is no such job.
        StoreError: a store did not answer; call it again.
    """
    check_query(query)
    parent, _, name = uri.rstrip("/").rpartition("/")
    open_files(uri).close()  # raises if it is not a URI
    check_bulk(uri)
    stores = Stores(load(settings))
    try:
        source = ExportSource(JobAdmin(stores.files, None, stores.patience), stores.files, job, query, batch)
        with stores.open_root(parent, workers=WORKERS) as outside:
            with suppress(*BUSY):
                source.find()  # what is refused makes nothing outside
            outside.call("bulk_root", lambda files: files.make_root(), CALL_TIMEOUT_S)
            digest = hashlib.sha256(f"{stores.files.uri}/{job}/{query}".encode()).hexdigest()[:16]
            staging = Staging(outside, f"_exporting-{name}-{digest}", told)
            there = outside.call("bulk_list", lambda files: files.list(""), CALL_TIMEOUT_S)
            if any(each.name == name for each in there):
                return _there_already(outside, staging, name)
            found = fill(staging, source)
            for path in filter(METADATA.fullmatch, found.files):
                staging.rewrite(path, partial(relocated, f"{outside.uri}/{name}"))
            read = inputs(CheckpointReader(staging.tree), [*found.files, *found.rebuilt])
            staging.commit(name)
            staging.delete()
    finally:
        stores.close()
    progress = staging.progress
    return CopiedCheckpoint(progress.files, progress.bytes, progress.kept, found.batch, inputs=tuple(read))


class ExportSource:
    """A query's checkpoint, whatever the present name of its leader directory."""

    def __init__(
        self, admin: JobAdmin, files: BoundedFiles, job: str, query: str, batch: int | None, *, begun: bool = False
    ) -> None:
        """Connect to nothing yet; without a batch it is the newest one; ``begun`` includes the input of the next."""
        self._admin, self._files, self.job, self.query = admin, files, job, query
        self._batch, self._begun = batch, begun

    def find(self) -> tuple[CheckpointReader, Closure]:
        """Return the checkpoint, and the closure of the batch; raises ``NotFound`` while its directory is renamed."""
        directory = self._admin.directory(self.job)
        reader = CheckpointReader(Tree(self._files, directory.at(f"{SPARK}/{self.query}")))
        try:
            # Before all the rest: see ha.spark.stored.commit_log.
            batches = CheckpointFiles(reader.tree.listing("commits")).batches
        except NotFound:
            known = {entry.name for entry in directory.list(SPARK) if entry.is_directory}
            if self.query not in known:
                raise no_checkpoint(self.job, self.query, known) from None
            batches = []
        if not batches:
            raise Invalid(f"Query {self.query!r} of job {self.job!r} has committed no batch: there is nothing to copy.")
        batch = batches[-1] if self._batch is None else self._batch
        if batch not in batches:
            raise Invalid(
                f"Batch {batch} of query {self.query!r} is not retained: take one from {batches[0]} to {batches[-1]}."
            )
        return reader, reader.closures(reader.files(), [batch], begun=self._begun)[0]


def fill(staging: Staging, source: ExportSource) -> Closure:
    """Copy until the copy is a closure, and return that; raises ``Conflict`` if the query was faster in every round."""
    reason: Exception | None = None
    hole = ""
    for _ in range(ROUNDS):
        try:
            reader, found = source.find()
            if found.missing and found.missing == hole:  # seen twice: it is not Spark that deletes just now
                said = advice(hole, source.job, source.query)
                raise Invalid(f"Batch {found.batch} cannot be continued. {hole}: {found.reason} {said}")
            if hole := found.missing:
                continue
            staging.fill(reader.tree, found.files)
            for path, origin in found.rebuilt.items():
                staging.write(path, reader.rebuilt(path, origin))
        except BUSY as error:
            reason = error
        else:
            return found
    raise Conflict(
        f"The checkpoint of query {source.query!r} could not be copied in {ROUNDS} rounds ({reason}) What was copied "
        "is kept: do it again, or stop the query first."
    )


def _there_already(outside: BoundedFiles, staging: Staging, name: str) -> CopiedCheckpoint:
    """Return an earlier try's copy if that exists at the target; its last answer was lost."""
    if not staging.committed():
        raise AlreadyExists(f"{posixpath.join(outside.uri, name)} exists already: choose another directory.")
    there = Tree(outside, name)
    listing = there.listing()
    staging.delete()
    read = tuple(inputs(CheckpointReader(there), listing))
    newest = newest_batch(there.listing("commits"))
    return CopiedCheckpoint(len(listing), sum(listing.values()), len(listing), newest, inputs=read)
