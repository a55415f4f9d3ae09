"""A query's checkpoint becomes a directory of its own, for a Spark without Hybrid HA; also while the query runs."""

import hashlib
import posixpath
from collections.abc import Collection
from functools import partial
from typing import Any

from ha.settings import load
from ha.spark.bulk.adopting import Copied
from ha.spark.bulk.copying import WORKERS, Staging, Told
from ha.spark.bulk.prefix import consistent, newest_commit
from ha.spark.bulk.trees import Tree
from ha.spark.location import check_query
from ha.spark.moved import METADATA, at
from ha.stores import Stores
from leader.errors import Fenced
from leader.names import SPARK
from leader.operations import Operations
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound, Unknown
from store.opening import open_files

ROUNDS = 10
"""Tries to get a copy that holds together; each begins with the newest batch, and keeps what is the same."""

CALL_TIMEOUT = 20.0
"""Seconds for the call that looks whether the target is there."""


def export(job: str, query: str, uri: str, *, told: Told | None = None, **settings: Any) -> Copied:
    """Copy a query's checkpoint, as it was right after its newest batch, to a directory that is not there yet.

    The job may run and may change its leader meanwhile. Nothing is seen of the copy before it is whole; one that was
    interrupted is gone on with by calling this again. No lease is taken: anybody who can read the files can do this.

    Args:
        job: the job's name.
        query: the query's name.
        uri: the directory to be: ``file://``, ``hdfs://`` or ``webhdfs://``; what is missing above it is made.
        told: called with a :class:`ha.spark.bulk.copying.Progress` at every step, from any thread.
        settings: as for :func:`ha.connect`.

    Raises:
        AlreadyExists: something is there.
        Conflict: the query changed its checkpoint faster than it could be copied.
        Invalid: the query has no committed batch, or that is no URI.
        InvalidName: the job or the query cannot be called that.
        NoLeader: there is no such job.
        StoreError: a store did not answer; call it again.
    """
    check_query(query)
    parent, _, name = uri.rstrip("/").rpartition("/")
    open_files(uri).close()  # raises if it is none
    stores = Stores(load(settings))
    try:
        with open_files(parent, workers=WORKERS) as outside:
            outside.call("bulk_root", lambda files: files.make_root(), CALL_TIMEOUT)
            digest = hashlib.sha256(f"{stores.files.uri}/{job}/{query}".encode()).hexdigest()[:16]
            staging = Staging(outside, f"_exporting-{name}-{digest}", told)
            if any(each.name == name for each in outside.call("bulk_list", lambda files: files.list(""), CALL_TIMEOUT)):
                return _there_already(outside, staging, name)
            source = _Source(Operations(stores.files, None, stores.timing.call_timeout), stores.files, job, query)
            newest, paths = _fill(staging, source)
            for path in filter(METADATA.fullmatch, paths):
                staging.rewrite(path, partial(at, f"{outside.uri}/{name}"))
            staging.settle(name)
            staging.delete()
    finally:
        stores.close()
    progress = staging.progress
    return Copied(progress.files, progress.bytes, progress.kept, newest)


class _Source:
    """A query's checkpoint, wherever its leader directory is by now."""

    def __init__(self, operations: Operations, files: BoundedFiles, job: str, query: str) -> None:
        self._operations = operations
        self._files = files
        self.job = job
        self.query = query

    def find(self) -> tuple[Tree, int, dict[str, int]]:
        """Return where it is, the newest batch, and the files that belong together then.

        Raises:
            Invalid: nothing was committed.
            NotFound: the leader directory has just got another name.
            NoLeader: there is no such job.
        """
        own = self._operations.directory(self.job)
        tree = Tree(self._files, f"{self.job}/{own.directory.name}/{SPARK}/{self.query}")
        try:
            newest = newest_commit(tree.listing("commits"))  # before all the rest: see prefix
        except NotFound:
            own.list()
            newest = None
        if newest is None:
            raise Invalid(f"Query {self.query!r} of job {self.job!r} has committed no batch: there is nothing to copy.")
        return tree, newest, consistent(tree.listing(), newest)


def _fill(staging: Staging, source: _Source) -> tuple[int, Collection[str]]:
    """Copy until it holds together, and return the newest batch, and what was copied."""
    reason: Exception | None = None
    for _ in range(ROUNDS):
        try:
            tree, newest, wanted = source.find()
        except (NotFound, Fenced) as error:  # a new leader has renamed it
            reason = error
            continue
        try:
            staging.fill(tree, wanted)
        except (NotFound, Conflict, Unknown) as error:  # so has Spark, or has deleted what is of no use any more
            reason = error
            continue
        return newest, wanted
    raise Conflict(
        f"The checkpoint of query {source.query!r} could not be copied in {ROUNDS} rounds ({reason}) What was copied "
        "is kept: run it again, or stop the query first."
    )


def _there_already(outside: BoundedFiles, staging: Staging, name: str) -> Copied:
    """Something is there: what an earlier try has put there, if it did not hear of that."""
    if not staging.settled():
        raise AlreadyExists(f"Something is at {posixpath.join(outside.uri, name)} already: choose another directory.")
    there = Tree(outside, name)
    listing = there.listing()
    staging.delete()
    return Copied(len(listing), sum(listing.values()), len(listing), newest_commit(there.listing("commits")))
