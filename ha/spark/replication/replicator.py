"""Replicator: rounds over all queries of a job. Each round copies the files that the newest batch adds.

It reads the checkpoints of a running job, so its calls are counted and paced.
"""

import threading
from collections.abc import Collection
from dataclasses import dataclass, replace

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader, Kept
from ha.checkpoints.closure import Closure
from ha.checkpoints.trees import Pace, Tree
from ha.checkpoints.verify import advice
from ha.hook.query_rules import named
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_tools.copying import Told
from ha.spark.replication.replica import Replica
from ha.spark.replication.report import FIRST, REPORT, ReplicaReport, ReplicatedQuery, encoded, line_of, promoted, today
from ha.spark.stored.commit_log import newest_batch
from leader.errors import Fenced, LeaderError, NotLeader
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import Conflict, Invalid, NotFound, Unknown

BUSY = (NotFound, Fenced, Conflict, Unknown)
"""Spark has deleted a file, or another leader has renamed the directory: the round is dropped and started again."""

SAID_S = 30.0  # between two reports while nothing is moved

CALL_TIMEOUT_S = 20.0

NEWEST = 5  # batches that are tried if the newest one misses a file


class Promoted(LeaderError):
    """The replica was promoted: there is nothing more to replicate."""


@dataclass(frozen=True, slots=True)
class QueryRound:
    """The result of one round for one query: what it has moved, and what it has cost the source."""

    query: str
    batch: int | None
    newest: int | None
    begun: int | None = None
    files: int = 0
    bytes: int = 0
    swept: int = 0
    anew: bool = False
    calls: int = 0
    seconds: float = 0.0
    problem: str = ""


class Budget:
    """The budget of calls of the source's store, and the calls so far; safe to use from several threads.

    Attributes:
        calls: number of lists and of files that were opened.
        bytes: number of bytes of the files that were copied.
    """

    def __init__(
        self, calls_per_s: float | None = None, bytes_per_s: float | None = None, clock: Clock = BOOT_CLOCK
    ) -> None:
        """Nothing was asked yet; None is no limit."""
        self.calls = self.bytes = 0
        self._calls = Pace(calls_per_s, clock) if calls_per_s else None
        self._bytes = Pace(bytes_per_s, clock) if bytes_per_s else None
        self._lock = threading.Lock()

    def call(self) -> None:
        """Wait until one call more may begin."""
        with self._lock:
            self.calls += 1
        if self._calls is not None:
            self._calls.wait()

    def file(self, size: int) -> None:
        """Wait until a file of that size may be copied."""
        self.call()
        with self._lock:
            self.bytes += size
        if self._bytes is not None:
            self._bytes.wait(size)


class ReplicaSource:
    """A job's checkpoints, whatever the present name of its leader directory."""

    def __init__(
        self, admin: JobAdmin, files: BoundedFiles, job: str, budget: Budget, only: Collection[str] = ()
    ) -> None:
        """Connect to nothing yet; without ``only`` all queries are meant."""
        self.job, self.budget, self._only = job, budget, frozenset(only)
        self._admin, self._files = admin, files
        self._known: FencedDirectory | None = None
        self._line = FIRST

    @property
    def uri(self) -> str:
        """URI of the job."""
        return self._files.at(self.job)

    def queries(self) -> list[str]:
        """Return the names of the queries that have a checkpoint; raises ``Fenced`` while the job's leader changes."""
        try:
            self.budget.call()
            entries = self._directory().list(SPARK)
        except (Fenced, NotFound):
            self._known = None  # another leader: look for its directory
            entries = self._directory().list(SPARK)
        return named(each.name for each in entries if not self._only or each.name in self._only)

    @property
    def line(self) -> str:
        """The line of the job, as the last :meth:`queries` found it."""
        return self._line

    def tree(self, query: str) -> Tree:
        """Return a query's checkpoint, where it was at the last :meth:`queries`."""
        return Tree(self._files, self._directory().at(f"{SPARK}/{query}"), self.budget.call)

    def _directory(self) -> FencedDirectory:
        if self._known is None:
            self.budget.call()
            found = self._admin.directory(self.job)
            self.budget.call()
            self._line = line_of(found)  # only a promotion changes it, and that claims the job
            self._known = found
        return self._known


class Replicator:
    """The replication of one job, for the leader of its replica."""

    def __init__(
        self,
        source: ReplicaSource,
        files: BoundedFiles,
        leadership: Leadership,
        directory: FencedDirectory,
        *,
        retained: int,
        told: Told | None = None,
    ) -> None:
        """Connect to nothing yet; ``directory`` is that of the leadership, on the store of the replica."""
        self._source, self._files, self._leadership, self._directory = source, files, leadership, directory
        self._retained, self._told = retained, told
        self._replicas: dict[str, Replica] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._kept: dict[str, Kept] = {}
        self._level_at: dict[str, float] = {}
        self.report = ReplicaReport(source.uri, 0.0, [])  # of the newest round
        self._said: tuple[float, list[ReplicatedQuery]] = (float("-inf"), [])

    def round(self) -> list[QueryRound]:
        """Move what is new, of every query; one whose source changes meanwhile says so, and waits for the next."""
        if promoted(self._directory):
            raise Promoted(
                f"The replica of job {self._source.job!r} was promoted: it runs there now, and must not run here. "
                "To replicate into an empty place once more, add --again."
            )
        try:
            queries = self._source.queries()
        except Fenced:
            return []
        done = [self._round(query) for query in queries]
        self._report(done)
        return done

    def _round(self, query: str) -> QueryRound:
        begin, calls = BOOT_CLOCK.now(), self._source.budget.calls
        try:
            found = self._moved(query)
        except BUSY as error:
            self._directory.check()  # raises Fenced if it is the replica that is gone
            batch = self._replicas[query].batch if query in self._replicas else None
            found = QueryRound(query, batch, None, problem=f"Its files have changed meanwhile. ({error})")
        except Invalid as error:
            found = QueryRound(query, self._replicas[query].batch, None, problem=f"{error}")
        return replace(found, calls=self._source.budget.calls - calls, seconds=round(BOOT_CLOCK.now() - begin, 3))

    def _moved(self, query: str) -> QueryRound:
        replica = self._replicas.get(query)
        if replica is None:
            replica = Replica(self._files, self._directory, query, self._retained, self._told)
            self._replicas[query] = replica
        tree = self._source.tree(query)
        try:
            commits = tree.entries("commits")
        except NotFound:
            commits = {}
        newest = newest_batch(commits)
        if newest is None:
            if replica.batch is not None:
                raise Conflict("It has no commits now.")  # its leader changes, or it starts from scratch
            return QueryRound(query, None, None)
        seen = newest, commits[f"commits/{newest}"].modified_ms  # one that was put back comes to the same batch again
        if newest == replica.batch and seen == self._seen.get(query):
            return QueryRound(query, newest, newest, newest)
        reader = CheckpointReader(tree, self._kept.get(query))
        names = reader.files()
        closure = self._restorable(query, reader, names, newest)
        before = replica.batch
        if before is not None and newest > before >= closure.batch:
            raise Conflict(f"Batch {newest} is not complete yet.")
        moved = replica.move(reader, closure, self._before)
        if closure.batch == newest:
            self._seen[query] = seen
        self._kept[query] = reader.kept()
        begun = newest_batch(path for path in names.sizes if path.startswith("offsets/"))
        return QueryRound(query, replica.batch, newest, begun, moved.files, moved.bytes, moved.swept, moved.anew)

    def _restorable(self, query: str, reader: CheckpointReader, names: CheckpointFiles, newest: int) -> Closure:
        (found,) = reader.closures(names, [newest])
        if found.restorable:
            return found
        others = [each for each in names.batches if each < newest][-NEWEST:]
        for each in reversed(reader.closures(names, others)):
            if each.restorable:
                return each
        more = advice(found.missing, self._source.job, query)
        raise Invalid(f"Batch {newest} cannot be continued. {found.missing}: {found.reason} {more}")

    def _before(self, size: int) -> None:
        if not self._leadership.is_leader():
            raise NotLeader(f"The replication of job {self._source.job!r} is led by another process now.")
        self._source.budget.file(size)

    def _report(self, done: list[QueryRound]) -> None:
        at = today()
        for each in done:
            if not each.problem and each.batch == each.newest:
                self._level_at[each.query] = at
        queries = [
            ReplicatedQuery(
                each.query, each.batch, each.newest, each.begun, self._level_at.get(each.query, 0.0), each.problem
            )
            for each in done
        ]
        self.report = ReplicaReport(self._source.uri, at, queries, self._source.line)
        said_at, said = self._said
        same = [(each.name, each.batch, each.problem) for each in said]
        if same == [(each.name, each.batch, each.problem) for each in queries] and BOOT_CLOCK.now() < said_at + SAID_S:
            return
        data, path = encoded(self.report), self._directory.at(REPORT)
        self._files.call("bulk_write", lambda files: files.write(path, data), CALL_TIMEOUT_S)
        self._said = (BOOT_CLOCK.now(), queries)
