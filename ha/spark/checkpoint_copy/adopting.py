"""Adoption: copies a Spark checkpoint into the leader directory, and makes it a query's checkpoint by one rename.

    <leader directory>/adopting/<query>/<source>/    staging place; see ha.spark.checkpoint_copy.copying
    <leader directory>/spark/<query>/                the query's checkpointLocation
    <leader directory>/trash/<trash>/query=<query>   the former checkpoint, if it was replaced

All of it is below the leader directory. So a claim fences the copy, and the next leader continues it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from ha.checkpoints.layouts import Layouts
from ha.checkpoints.renumbered_tree import RenumberedTree, check_plan
from ha.checkpoints.renumbering import match
from ha.checkpoints.trees import Tree, check_bulk
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_copy.copying import WORKERS, Staging, Told
from ha.spark.commit_log import kept, newest_batch
from ha.spark.locations import check_query
from ha.spark.relocate import relocate
from leader.errors import NotLeader
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.status import JobStatus
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

ADOPTING = "adopting"

CALL_TIMEOUT_S = 10.0
"""Time for one call; only the adoption itself waits for it."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of an adoption or an export.

    Attributes:
        files: number of files.
        bytes: their total size.
        kept: number of files that an earlier try had copied already.
        batch: newest batch that the copy has committed; None if there is none.
        replaced: name of the former directory in the trash; empty if there was none.
        inputs: of an export, the folders that its file sources read.
    """

    files: int
    bytes: int
    kept: int
    batch: int | None
    replaced: str = ""
    inputs: tuple[str, ...] = ()


def adopt(
    leadership: Leadership,
    query: str,
    uri: str,
    *,
    replace: bool = False,
    told: Told | None = None,
    plan: tuple[Layouts, Layouts] | None = None,
) -> Copied:
    """Copy a checkpoint directory and make the copy the checkpoint of a query. Do it before the query starts.

    The copy is not visible before it is complete. To continue an interrupted copy, call this again; the next leader can
    do so, too. The directory itself is only read; its query must not run.

    Args:
        leadership: of the job.
        query: name of the query.
        uri: of the directory: ``file://``, ``hdfs://`` or ``webhdfs://``.
        replace: whether the query's present checkpoint may go to the job's trash.
        told: called with a :class:`ha.spark.checkpoint_copy.copying.Progress` at every step, from any thread.
        plan: operators with state of the checkpoint, and of the program that is to go on with it: they get the numbers
            that they have there. By default none changes.

    Raises:
        AlreadyExists: the query has a checkpoint, and ``replace`` is false.
        Conflict: the directory changed during the copy, or the job's leavings are being cleaned up.
        Fenced: another leader has taken over.
        Doubt: the operators of the plan cannot be matched without doubt.
        Invalid: there is no checkpoint at the URI, or it is not a URI; or the plan was made for another one.
        InvalidName: the query cannot have that name.
        NotLeader: the leadership has ended.
        StoreError: a store did not answer; call it again.
    """
    check_query(query)
    root = leadership.directory.rsplit("/", 2)[0]
    with leadership.open_files(uri) as there, leadership.open_files(root, WORKERS) as files:
        source = Tree(there)
        _checkpoint(source)  # raises if it is none
        if plan is not None:
            source = _renumbered(source, *plan)
        wanted = _checkpoint(source)
        directory = FencedDirectory(files, leadership.job, leadership.own.leader, CALL_TIMEOUT_S)
        if JobStatus(directory).entry().cleaning == "cleaning":
            raise Conflict(f"Job {leadership.job!r} is being cleaned up: complete that first, with `ha clean`.")
        adoption = _Adoption(leadership, files, directory, query, source.uri, told)
        try:
            replaced = adoption.run(source, wanted, replace=replace)
        except NotFound:
            directory.check()  # raises Fenced if another leader has taken over
            raise
        progress = adoption.staging.progress
    return Copied(len(wanted), sum(wanted.values()), progress.kept, newest_batch(_commits(wanted)), replaced)


def check_source(
    query: str, uri: str, open_root: Callable[[str], BoundedFiles], plan: tuple[Layouts, Layouts] | None = None
) -> None:
    """Check what can be checked without leading the job: the query's name, and that a checkpoint is at the URI.

    Args:
        query: name of the query.
        uri: of the directory.
        open_root: opens a root with the caller's settings.
        plan: see :func:`adopt`.

    Raises:
        Doubt: the operators of the plan cannot be matched without doubt.
        Invalid: there is no checkpoint at the URI, or it is not a URI; or the plan was made for another one.
        InvalidName: the query cannot have that name.
        StoreError: the store of the checkpoint did not answer.
    """
    check_query(query)
    with open_root(uri) as there:
        check_bulk(there.uri)
        _checkpoint(Tree(there))
        if plan is not None:
            _renumbered(Tree(there), *plan)


def _renumbered(tree: Tree, before: Layouts, after: Layouts) -> Tree:
    """Return the checkpoint with its operators under the numbers that the program gives them."""
    numbers = match(before, after)
    check_plan(tree, before)
    return RenumberedTree(tree, numbers)


class _Adoption:
    """One adoption, as far as it has come."""

    def __init__(
        self,
        leadership: Leadership,
        files: BoundedFiles,
        directory: FencedDirectory,
        query: str,
        uri: str,
        told: Told | None,
    ) -> None:
        self._leadership = leadership
        self._directory = directory
        self._query = query
        self._queries = QueryCheckpoints(directory)
        self._files = files
        self._home = directory.at()
        self._place = hashlib.sha256(uri.encode()).hexdigest()[:16]
        self.staging = Staging(files, f"{self._home}/{ADOPTING}/{query}/{self._place}", told)

    def run(self, source: Tree, wanted: dict[str, int], *, replace: bool) -> str:
        """Do the remaining steps; return the name of the old checkpoint in the trash."""
        taken = self._queries.has(self._query)
        shown = Tree(self._files, f"{self._home}/{SPARK}/{self._query}")
        if taken and self.staging.committed() and kept(shown.listing()) == wanted:
            # Seen but not acknowledged: a NameNode may forget what it shows, so it is done once more.
            self._directory.rename(f"{SPARK}/{self._query}", f"{ADOPTING}/{self._query}/{self._place}/tree")
            taken = False
        if taken and not replace:
            raise AlreadyExists(
                f"Query {self._query!r} of job {self._directory.job!r} has a checkpoint already. Have it replaced, "
                "which moves it to the trash, or leave it."
            )
        self._make_room()
        self.staging.fill(source, wanted, self._check)
        if _checkpoint(source) != wanted:
            raise Conflict(f"{source.uri} changed while it was copied: stop its query, and adopt it again.")
        replaced = self._queries.discard(self._query) if taken else ""
        self._queries.show(f"{ADOPTING}/{self._query}/{self._place}/tree", self._query)
        self._directory.delete(f"{ADOPTING}/{self._query}")
        relocate(self._directory, f"{SPARK}/{self._query}", self._leadership.path(f"{SPARK}/{self._query}"))
        return replaced

    def _make_room(self) -> None:
        self._directory.make_folder(ADOPTING)
        self._directory.make_folder(f"{ADOPTING}/{self._query}")
        for entry in self._directory.list(f"{ADOPTING}/{self._query}"):
            if entry.name != self._place:  # an abandoned copy of another directory
                self._directory.delete(f"{ADOPTING}/{self._query}/{entry.name}")

    def _check(self) -> None:
        if not self._leadership.is_leader():
            raise NotLeader(f"Epoch {self._leadership.epoch} of job {self._directory.job!r} is over: adopt it again.")


def _checkpoint(source: Tree) -> dict[str, int]:
    """Return the files of a checkpoint.

    Raises:
        Invalid: it is not a checkpoint.
    """
    try:
        found = kept(source.listing())
    except NotFound as error:
        raise Invalid(f"There is nothing at {source.uri}: give the checkpointLocation of a query.") from error
    if "metadata" not in found or not any(path.startswith("offsets/") for path in found):
        raise Invalid(
            f"{source.uri} is not the checkpoint of a streaming query: it has no file 'metadata', or no offsets."
        )
    return found


def _commits(paths: dict[str, int]) -> list[str]:
    return [path for path in paths if path.startswith("commits/")]
