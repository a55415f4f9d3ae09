"""Import: copies a Spark checkpoint into the leader directory, and makes it a query's checkpoint by one rename.

    <leader directory>/importing/<query>/<source>/    staging place; see ha.spark.checkpoint_tools.copying
    <leader directory>/spark/<query>/                the query's checkpointLocation
    <leader directory>/trash/<trash>/query=<query>   the former checkpoint, if it was replaced

All of it is below the leader directory. So a claim fences the copy, and the next leader continues it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.layouts import Layouts, changes, layouts
from ha.checkpoints.renumbering import Numbers, is_rewritten, match, renumbered_path, rewritten
from ha.checkpoints.trees import Tree, check_bulk
from ha.checkpoints.verify import fault
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_tools.copying import WORKERS, Staging, Told
from ha.spark.stored.commit_log import kept, newest_batch
from ha.spark.stored.locations import check_query, relocate
from leader.errors import NotLeader
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.status import JobStatus
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

IMPORTING = "importing"

CALL_TIMEOUT_S = 10.0  # time for one call; only the import itself waits for it


@dataclass(frozen=True, slots=True)
class CopiedCheckpoint:
    """The result of an import or an export.

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


def import_checkpoint(
    leadership: Leadership,
    query: str,
    uri: str,
    *,
    replace: bool = False,
    told: Told | None = None,
    plan: tuple[Layouts, Layouts] | None = None,
) -> CopiedCheckpoint:
    """Copy a checkpoint directory and make the copy the checkpoint of a query. Do it before the query starts.

    The copy is not visible before it is complete. To continue an interrupted copy, call this again; the next leader can
    do so, too. The directory itself is only read; its query must not run.

    Args:
        leadership: of the job.
        query: name of the query.
        uri: of the directory: ``file://``, ``hdfs://`` or ``webhdfs://``.
        replace: whether the query's present checkpoint may go to the job's trash.
        told: called with a :class:`ha.spark.checkpoint_tools.copying.CopyProgress` at every step, from any thread.
        plan: operators with state of the checkpoint, and of the program that is to go on with it: they get the numbers
            that they have there. By default none changes.

    Raises:
        AlreadyExists: the query has a checkpoint, and ``replace`` is false.
        Conflict: the directory changed during the copy, or the job's leavings are being cleaned up.
        Fenced: another leader has taken over.
        Doubt: the operators of the plan cannot be matched without doubt.
        Invalid: there is no checkpoint at the URI, it is damaged, or it is not a URI; or the plan is of another one.
        InvalidName: the query cannot have that name.
        NotLeader: the leadership has ended.
        StoreError: a store did not answer; call it again.
    """
    check_query(query)
    root = leadership.directory.rsplit("/", 2)[0]
    with leadership.open_files(uri) as there, leadership.open_files(root, WORKERS) as files:
        source = Tree(there)
        needed = _check_start(source)
        if plan is not None:
            source, needed = _renumbered(source, *plan), set()
        wanted = _checkpoint(source)
        directory = FencedDirectory(files, leadership.job, leadership.own.leader, CALL_TIMEOUT_S)
        if JobStatus(directory).entry().cleaning == "cleaning":
            raise Conflict(f"It is being cleaned up: complete that first, with `ha job clean {leadership.job}`.")
        place = f"{IMPORTING}/{query}/{hashlib.sha256(source.uri.encode()).hexdigest()[:16]}"
        staging = Staging(files, directory.at(place), told, needed=needed.__contains__)
        try:
            replaced = _run(leadership, directory, query, place, staging, source, wanted, replace=replace)
        except NotFound:
            directory.check()  # raises Fenced if another leader has taken over
            raise
    newest = newest_batch(path for path in wanted if path.startswith("commits/"))
    return CopiedCheckpoint(len(wanted), sum(wanted.values()), staging.progress.kept, newest, replaced)


def check_source(
    query: str, uri: str, open_root: Callable[[str], BoundedFiles], plan: tuple[Layouts, Layouts] | None = None
) -> None:
    """Check what can be checked without leading the job: the query's name, and that a checkpoint is at the URI."""
    # `open_root` opens a root with the caller's settings. For the plan and the errors see `import_checkpoint`.
    check_query(query)
    with open_root(uri) as there:
        check_bulk(there.uri)
        _check_start(Tree(there))
        if plan is not None:
            _renumbered(Tree(there), *plan)


def _renumbered(tree: Tree, before: Layouts, after: Layouts) -> Tree:
    numbers = match(before, after)
    check_plan(tree, before)
    return RenumberedTree(tree, numbers)


def _run(
    leadership: Leadership,
    directory: FencedDirectory,
    query: str,
    place: str,
    staging: Staging,
    source: Tree,
    wanted: dict[str, int],
    *,
    replace: bool,
) -> str:
    """Do the remaining steps of an import; return the name of the old checkpoint in the trash."""
    queries, shown = QueryCheckpoints(directory), f"{SPARK}/{query}"
    taken = queries.has(query)
    if taken and staging.committed() and kept(Tree(staging.tree.files, directory.at(shown)).listing()) == wanted:
        # Seen but not acknowledged: a NameNode may forget what it shows, so it is done again.
        directory.rename(shown, f"{place}/tree")
        taken = False
    if taken and not replace:
        raise AlreadyExists(
            f"Query {query!r} of job {directory.job!r} has a checkpoint already. Have it replaced, "
            "which moves it to the trash, or leave it."
        )
    home, _, own = place.rpartition("/")
    directory.make_folder(IMPORTING)
    directory.make_folder(home)
    for entry in directory.list(home):
        if entry.name != own:  # an abandoned copy of another directory
            directory.delete(f"{home}/{entry.name}")

    def check() -> None:
        if not leadership.is_leader():
            raise NotLeader(f"Epoch {leadership.epoch} of job {directory.job!r} is over: import it again.")

    staging.fill(source, wanted, check)
    if _checkpoint(source) != wanted:
        raise Conflict(f"{source.uri} changed while it was copied: stop its query, and import it again.")
    replaced = queries.discard(query) if taken else ""
    queries.show(f"{place}/tree", query)
    directory.delete(home)
    relocate(directory, shown, leadership.path(shown))
    return replaced


def _checkpoint(source: Tree) -> dict[str, int]:
    """Return the files of a checkpoint; raises ``Invalid`` if it is none."""
    try:
        found = kept(source.listing())
    except NotFound as error:
        raise Invalid(f"There is nothing at {source.uri}: give the checkpointLocation of a query.") from error
    if "metadata" not in found or not any(path.startswith("offsets/") for path in found):
        raise Invalid(
            f"{source.uri} is not the checkpoint of a streaming query: it has no file 'metadata', or no offsets."
        )
    return found


def _check_start(source: Tree) -> set[str]:
    """Return the files that Spark needs to start; raises ``Invalid`` if one that it reads is missing or damaged."""
    _checkpoint(source)
    if found := fault(lambda: CheckpointReader(source)):
        raise Invalid(
            f"{source.uri} is damaged: Spark would not start from it. {found.missing}: {found.reason} Put that file "
            f"back first; `ha checkpoint verify {source.uri}` says what else there is."
        )
    reader = CheckpointReader(source)
    names = reader.files()
    return {path for each in reader.closures(names, names.batches[-1:]) for path in each.files}


class RenumberedTree(Tree):
    """A view of another tree. The files that say numbers are read at once: ``Unreadable`` if one has another form."""

    def __init__(self, tree: Tree, numbers: Numbers) -> None:
        super().__init__(tree.files, tree.path)
        self._numbers = numbers
        self._old: dict[str, str] = {}  # by its new path, the path of each file that was listed
        names = {path for path in tree.listing() if is_rewritten(path)}
        said = CheckpointReader(tree).contents(names)
        self._rewritten: dict[str, bytes] = {}
        for path in names:
            data = said[path]
            if data is None:
                raise NotFound(f"{path} does not exist.")
            self._rewritten[renumbered_path(path, numbers)] = rewritten(data, numbers)

    @property
    def uri(self) -> str:
        """URI of the directory, and the numbers: two views of one directory are not the same."""
        return f"{super().uri}#{','.join(f'{old}-{new}' for old, new in sorted(self._numbers.items()))}"

    def listing(self, below: str = "") -> dict[str, int]:
        """Return the size of every file in bytes, by its new path; only the whole tree can be listed."""
        if below:
            raise Invalid("A renumbered checkpoint is listed as a whole.")
        found = {}
        for path, size in super().listing().items():
            new = renumbered_path(path, self._numbers)
            sums_of_rewritten = new.endswith(".crc") and new.removesuffix(".crc") in self._rewritten
            if not sums_of_rewritten:
                self._old[new] = path
                found[new] = len(self._rewritten[new]) if new in self._rewritten else size
        return found

    def read_into(self, path: str, size: int, target: Tree, name: str, told: Callable[[bytes], object]) -> int:
        """Copy the content of one file, by its new path; otherwise as a tree does."""
        if path not in self._rewritten:
            return super().read_into(self._old.get(path, path), size, target, name, told)
        data = self._rewritten[path]
        target.store(name, data)
        told(data)
        return len(data)


def check_plan(tree: Tree, before: Layouts) -> None:
    """Raise ``Invalid`` if a checkpoint has other operators than a plan was made for."""
    reader = CheckpointReader(tree)
    files: CheckpointFiles = reader.files()
    newest = files.batches[-1] if files.batches else -1
    if found := changes(reader.run(layouts(files, newest)), before):
        raise Invalid(
            f"{tree.uri} has other operators than the checkpoint that the plan was made for: {found[0].text} "
            "Make the plan again."
        )
