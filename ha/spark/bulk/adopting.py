"""A checkpoint directory of Spark's becomes that of a job's query: copied into the leader directory, shown by a rename.

    <leader directory>/adopting/<query>/<source>/    the staging place; see ha.spark.bulk.copying
    <leader directory>/spark/<query>/                the query's checkpointLocation
    <leader directory>/trash/<trash>/query=<query>   what was in its place, if it was replaced

All of it moves on with the leader directory, so the next leader goes on with the copy, and a claim fences it.
"""

import hashlib
from dataclasses import dataclass

from ha.leadership import Leadership
from ha.spark.bulk.copying import WORKERS, Staging, Told
from ha.spark.bulk.prefix import kept, newest_commit
from ha.spark.bulk.trees import Tree
from ha.spark.location import check_query
from ha.spark.moved import bring_home
from leader.errors import NotLeader
from leader.names import SPARK, LeaderDirectory
from leader.own import OwnDirectory
from leader.queries import Queries
from leader.status import JobStatus
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound
from store.opening import open_files

ADOPTING = "adopting"

CALL_TIMEOUT = 10.0
"""Seconds for one call: nothing waits for it that a person would miss."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    Attributes:
        files: number of files.
        bytes: their sizes in all.
        kept: files that an earlier try had copied already.
        batch: the newest batch that is committed there; None if none is.
        replaced: what the directory that was there before is called in the trash; empty if there was none.
    """

    files: int
    bytes: int
    kept: int
    batch: int | None
    replaced: str = ""


def adopt(leadership: Leadership, query: str, uri: str, *, replace: bool = False, told: Told | None = None) -> Copied:
    """Make a copy of a checkpoint directory the checkpoint of a query. Do it before the query is started.

    Nothing is seen of it before it is whole. A copy that was interrupted is gone on with by calling this again, also by
    the next leader. The directory itself is only read; its query must not run.

    Args:
        leadership: of the job.
        query: the query's name.
        uri: the directory: ``file://``, ``hdfs://`` or ``webhdfs://``.
        replace: whether a checkpoint that the query has may go into the job's trash.
        told: called with a :class:`ha.spark.bulk.copying.Progress` at every step, from any thread.

    Raises:
        AlreadyExists: the query has a checkpoint, and ``replace`` is false.
        Conflict: the directory was changed while it was copied, or what the job has left is being cleaned up.
        Fenced: another leader has taken over.
        Invalid: that is no directory of a checkpoint, or no URI.
        InvalidName: the query cannot be called that.
        NotLeader: the leadership has ended.
        StoreError: a store did not answer; call it again.
    """
    check_query(query)
    with open_files(uri) as there, open_files(_root(leadership), workers=WORKERS) as files:
        source = Tree(there)
        wanted = _checkpoint(source)
        own = OwnDirectory(files, leadership.job, _directory(leadership), CALL_TIMEOUT)
        if JobStatus(own).entry().cleaning == "cleaning":
            raise Conflict(f"Job {leadership.job!r} is being cleaned up: finish that first, with `ha clean`.")
        adoption = _Adoption(leadership, files, own, query, source.uri, told)
        try:
            replaced = adoption.run(source, wanted, replace=replace)
        except NotFound:
            own.check()  # says so if we were fenced
            raise
        progress = adoption.staging.progress
    return Copied(len(wanted), sum(wanted.values()), progress.kept, newest_commit(_commits(wanted)), replaced)


class _Adoption:
    """One adoption, as far as it has come."""

    def __init__(
        self, leadership: Leadership, files: BoundedFiles, own: OwnDirectory, query: str, uri: str, told: Told | None
    ) -> None:
        self._leadership = leadership
        self._own = own
        self._query = query
        self._queries = Queries(own)
        self._files = files
        self._home = f"{own.job}/{own.directory.name}"
        self._place = hashlib.sha256(uri.encode()).hexdigest()[:16]
        self.staging = Staging(files, f"{self._home}/{ADOPTING}/{query}/{self._place}", told)

    def run(self, source: Tree, wanted: dict[str, int], *, replace: bool) -> str:
        """Do what is still to be done; return what the old checkpoint is called in the trash."""
        taken = self._queries.has(self._query)
        shown = Tree(self._files, f"{self._home}/{SPARK}/{self._query}")
        if taken and self.staging.settled() and kept(shown.listing()) == wanted:
            # Seen, not acknowledged: a NameNode may forget what it shows, so it is done once more.
            self._own.rename(f"{SPARK}/{self._query}", f"{ADOPTING}/{self._query}/{self._place}/tree")
            taken = False
        if taken and not replace:
            raise AlreadyExists(
                f"Query {self._query!r} of job {self._own.job!r} has a checkpoint already: it can be replaced, and "
                "goes into the trash then."
            )
        self._make_room()
        self.staging.fill(source, wanted, self._check)
        if _checkpoint(source) != wanted:
            raise Conflict(f"{source.uri} was changed while it was copied: stop its query, and adopt it again.")
        replaced = self._queries.discard(self._query) if taken else ""
        self._queries.show(f"{ADOPTING}/{self._query}/{self._place}/tree", self._query)
        self._own.delete(f"{ADOPTING}/{self._query}")
        bring_home(self._own, f"{SPARK}/{self._query}", self._leadership.path(f"{SPARK}/{self._query}"))
        return replaced

    def _make_room(self) -> None:
        self._own.make_folder(ADOPTING)
        self._own.make_folder(f"{ADOPTING}/{self._query}")
        for entry in self._own.list(f"{ADOPTING}/{self._query}"):
            if entry.name != self._place:  # begun from another directory, and given up
                self._own.delete(f"{ADOPTING}/{self._query}/{entry.name}")

    def _check(self) -> None:
        if not self._leadership.is_leader():
            raise NotLeader(f"Epoch {self._leadership.epoch} of job {self._own.job!r} is over: adopt it again.")


def _checkpoint(source: Tree) -> dict[str, int]:
    """The files of a checkpoint.

    Raises:
        Invalid: it is none.
    """
    try:
        found = kept(source.listing())
    except NotFound as error:
        raise Invalid(f"There is nothing at {source.uri}: give the checkpointLocation of a query.") from error
    if "metadata" not in found or not any(path.startswith("offsets/") for path in found):
        raise Invalid(f"{source.uri} is no checkpoint of a streaming query: it has no file 'metadata', or no offsets.")
    return found


def _commits(paths: dict[str, int]) -> list[str]:
    return [path for path in paths if path.startswith("commits/")]


def _root(leadership: Leadership) -> str:
    return leadership.directory.rsplit("/", 2)[0]


def _directory(leadership: Leadership) -> LeaderDirectory:
    return LeaderDirectory(leadership.epoch, leadership.session_id)
