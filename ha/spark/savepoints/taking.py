"""Taking: copies the closures of all queries of a job at a consistent cut, and shows the copy by one rename.

The job's queries notice nothing: the copy reads files that Spark has committed, in another process than the driver.

A batch publishes its rows before it commits, so another query may have read rows of an uncommitted batch. So the cut
looks at a reader before the queries that it reads from. Of each of these it then takes a batch that is at least as new
as all that it had begun by then. If need be, it waits for that commit; no query waits for the cut.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.trees import Tree
from ha.config.stores import Stores
from ha.hook.query_rules import NAMELESS, fault, named
from ha.spark.checkpoint_tools.copying import WORKERS, CopyProgress, Staging
from ha.spark.savepoints.places import HIDDEN, MANIFEST, Manifest, SavepointPlace, encoded, opened, saved_query
from ha.spark.stored.commit_log import Logs, logs_of
from ha.spark.stored.locations import METADATA, relocated
from ha.spark.supervision.flow import Flow, readers, readers_first
from ha.spark.supervision.states import read as read_graph
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SAVEPOINTS, SPARK
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK
from store.errors import AlreadyExists, Conflict, Invalid, NotFound, StoreError, Unknown

ROUNDS = 10  # cuts that are tried: Spark may delete an old file, or write one once more, while it is copied

BUSY = (NotFound, Conflict, Unknown)

PAUSE_S = 0.25  # between two looks whether a query has committed the batch that it had begun; each costs two lists

CALL_TIMEOUT_S = 20.0

Told = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class WantedSavepoint:
    """A savepoint that is asked for."""

    id: str  # of the request
    where: str  # its URI; or its name, to be one of the job's own
    by: str = ""  # who asks, for people
    stopped: bool = False  # whether the job's queries have ended: then batches that they have begun belong to it
    # Whether queries that have completed no batch are left out; else it waits for their first one.
    partial: bool = False


def take(
    stores: Stores,
    directory: FencedDirectory,
    wanted: WantedSavepoint,
    may_go_on: Callable[[], object],
    told: Told = bool,
) -> Manifest:
    """Take a savepoint. If that fails, nothing of it stays, and the job is not touched in any case."""
    # `may_go_on` is called before each step; an error from it ends the savepoint. `told` gets the progress, a sentence,
    # from any thread. Raises `AlreadyExists` if there is something at its place, `Conflict` if the checkpoints changed
    # faster than they could be copied, and `Invalid` if there is nothing to save, or no cut.
    with ExitStack() as stack:
        inside = stack.enter_context(stores.open(stores.files.uri, workers=WORKERS))
        place = stack.enter_context(opened(stores, directory, wanted.where))
        _make_room(place, directory)

        def tell(progress: CopyProgress) -> None:
            files = f"copied {progress.files_done} of {progress.files} files"
            told(f"It has {files}, {progress.bytes_done:,} of {progress.bytes:,} bytes.")

        staging = Staging(place.files, place.beside(f"saving-{wanted.id}"), tell)
        taking = _Taking(inside, directory, wanted, may_go_on, told)
        try:
            manifest = taking.fill(staging, place.uri)
            may_go_on()
            _show(staging, place)
        except NotFound:
            directory.check()  # raises Fenced if another leader has taken over
            raise
        finally:
            with suppress(StoreError):  # among the job's own, the next savepoint deletes it
                staging.delete()
    return manifest


def _make_room(place: SavepointPlace, directory: FencedDirectory) -> None:
    if place.parent:
        directory.make_folder(SAVEPOINTS)
        entries = directory.list(SAVEPOINTS)
        for entry in entries:
            if entry.name.startswith(HIDDEN):
                directory.delete(f"{SAVEPOINTS}/{entry.name}")
    else:
        place.files.call("bulk_root", lambda files: files.make_root(), CALL_TIMEOUT_S)
        entries = place.files.call("bulk_list", lambda files: files.list(""), CALL_TIMEOUT_S)
    if any(each.name == place.name for each in entries):
        raise AlreadyExists(f"{place.uri} exists already: choose another place for the savepoint.")


def _show(staging: Staging, place: SavepointPlace) -> None:
    try:
        staging.commit(place.path)
    except Unknown:
        if not staging.committed():
            raise


class _Taking:
    """One savepoint, while it is taken."""

    def __init__(
        self,
        inside: BoundedFiles,
        directory: FencedDirectory,
        wanted: WantedSavepoint,
        may_go_on: Callable[[], object],
        told: Told,
    ) -> None:
        self._inside, self._directory, self._wanted = inside, directory, wanted
        self._may_go_on, self._told = may_go_on, told
        self._begun: set[str] = set()
        self._before = ""  # query that the cut has looked at last
        self._odd: list[str] = []

    def fill(self, staging: Staging, uri: str) -> Manifest:
        """Copy until the copy is complete; returns its manifest, which is the last file of it."""
        self._wait_for_first_batches()
        reason: Exception | None = None
        holes: set[tuple[str, str]] = set()
        for _ in range(ROUNDS):
            try:
                readers = {query: self._reader(query) for query in self._queries()}
                closures = self._closures(readers)
                if missing := {(query, each.missing) for query, each in closures.items() if each.missing}:
                    if seen := sorted(missing & holes):  # twice, so it is not Spark that deletes just now
                        raise Invalid(_damaged(*seen[0], closures))
                    holes = missing
                    continue
                self._copy(staging, readers, closures, uri)
            except BUSY as error:
                self._directory.check()
                reason = error
            else:
                manifest = self._manifest(readers, closures)
                staging.write(MANIFEST, encoded(manifest))
                return manifest
        raise Conflict(f"The checkpoints could not be copied in {ROUNDS} rounds: {reason or 'files went away'}")

    def _wait_for_first_batches(self) -> None:
        """Wait until each query has completed a batch: from the savepoint the others would start from scratch."""
        while not (self._wanted.stopped or self._wanted.partial):
            late = [each for each in self._queries() if self._look(each).committed is None]
            if not late:
                return
            self._told(f"It waits for the first batch of {', '.join(late)}; --partial leaves out what has none.")
            self._may_go_on()
            BOOT_CLOCK.sleep(PAUSE_S)

    def _queries(self) -> list[str]:
        found = [each.name for each in self._directory.list(SPARK) if not NAMELESS.fullmatch(each.name)]
        self._odd = sorted(filter(fault, found))
        if self._odd and not (self._wanted.stopped or self._wanted.partial):
            raise Invalid(f"{fault(self._odd[0])} --partial leaves it out.")
        return named(found)

    def _reader(self, query: str) -> CheckpointReader:
        return CheckpointReader(Tree(self._inside, self._directory.at(f"{SPARK}/{query}")))

    def _closures(self, readers: dict[str, CheckpointReader]) -> dict[str, Closure]:
        self._begun.clear()
        self._before = ""
        # A stopped query's batch that was interrupted belongs to the savepoint as it was begun: a restart does the same
        # batch again. So nothing is waited for.
        graph, _ = read_graph(self._directory) if not self._wanted.stopped else (None, None)
        batches = cut(readers, graph.queries if graph is not None else (), self._look_again)
        if not batches:
            raise Invalid(f"No query of job {self._directory.job!r} has completed a batch: there is nothing to save.")
        found = {}
        for query, batch in batches.items():
            self._may_go_on()
            begun = query in self._begun
            found[query] = readers[query].closures(readers[query].files(), [batch], begun=begun)[0]
        return found

    def _look_again(self, query: str) -> Logs:
        """Look at a query; at the same one as before after a pause, because its commit is waited for."""
        self._may_go_on()
        if query == self._before:
            self._told(f"It waits until query {query} has completed the batch that it has begun.")
            BOOT_CLOCK.sleep(PAUSE_S)
        self._before, found = query, self._look(query)
        if self._wanted.stopped and not found.complete:
            self._begun.add(query)
        return found

    def _look(self, query: str) -> Logs:
        return logs_of(self._directory, f"{SPARK}/{query}")

    def _copy(
        self, staging: Staging, readers: dict[str, CheckpointReader], closures: dict[str, Closure], uri: str
    ) -> None:
        sizes = {
            f"{SPARK}/{query}/{path}": size for query, each in closures.items() for path, size in each.files.items()
        }
        staging.fill(Tree(self._inside, self._directory.at()), sizes, self._may_go_on)
        for query, each in closures.items():
            for path, origin in each.rebuilt.items():
                staging.write(f"{SPARK}/{query}/{path}", readers[query].rebuilt(path, origin))
            for path in filter(METADATA.fullmatch, each.files):
                staging.rewrite(f"{SPARK}/{query}/{path}", partial(relocated, f"{uri}/{SPARK}/{query}"))

    def _manifest(self, readers: dict[str, CheckpointReader], closures: dict[str, Closure]) -> Manifest:
        queries = [
            saved_query(query, readers[query], each, begun=query in self._begun)
            for query, each in sorted(closures.items())
        ]
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        leader, wanted = self._directory.leader, self._wanted
        return Manifest(
            *(self._directory.job, leader.epoch, wanted.id, at, wanted.by, wanted.stopped, _pyspark(), queries),
            left_out=sorted({*readers, *self._odd} - closures.keys()),
        )


def _damaged(query: str, path: str, closures: dict[str, Closure]) -> str:
    found = closures[query]
    return f"Batch {found.batch} of query {query} cannot be continued, so no savepoint has it. {path}: {found.reason}"


def _pyspark() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return ""


def cut(queries: Iterable[str], graph: Iterable[Flow], look: Callable[[str], Logs]) -> dict[str, int]:
    """Return the batch of each query, by name; without queries that have committed none."""
    # The graph has what they are declared to read and write; a query that is not in it has no connections. `look` is
    # called again for the same query until it has committed its batch. Raises `Invalid` if some of them read each
    # other's output, so no order does.
    listed, batches = list(graph), dict[str, int]()
    read_by = readers(listed)
    for query in readers_first(queries, listed):
        found = look(query)
        begun = found.begun
        while read_by.get(query) and not Logs(found.committed, begun).complete:
            found = look(query)
        if found.committed is not None:
            batches[query] = found.committed
    return batches
