"""Replication: the rounds of one process that replicates a job, for ever or until the replica is level."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from ha.checkpoints.trees import check_bulk
from ha.config.stores import Stores
from ha.leadership.lead import lead
from ha.leadership.leadership import Leadership
from ha.metrics.standby import ReplicationMetrics
from ha.spark.checkpoint_tools.copying import WORKERS, Told
from ha.spark.replication.replicator import Budget, Promoted, QueryRound, ReplicaSource, Replicator
from ha.spark.replication.report import REPORT, ReplicaReport, decoded, promoted, replica_of, unmark
from ha.spark.rewind.operated import led
from ha.spark.stored.commit_log import no_checkpoint
from leader.errors import Fenced, LeaderError, NoLeader, NotLeader
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK, check_job
from store.clock import BOOT_CLOCK
from store.errors import Conflict, Invalid, NotFound, StoreError

TRIES = 10  # rounds of `ReplicaRounds.once`: Spark may forget a file while it is moved


class ReplicaRounds:
    """The replication of one job by this process."""

    def __init__(
        self,
        opened: Stores,
        job: str,
        to: str,
        queries: Sequence[str],
        retain: int,
        budget: Budget,
        *,
        done: Callable[[list[QueryRound]], object],
        complain: Callable[[str], object],
    ) -> None:
        """Begin nothing yet; see :func:`check`."""
        # Without queries it replicates all; it retains what so many of the newest batches need. `done` receives what
        # each round has done, and `complain` a sentence whenever it has to wait or to try again.
        self._opened, self._job, self._to, self._queries = opened, job, to, tuple(queries)
        self._retain, self._budget, self._done, self._complain = retain, budget, done, complain
        self._metrics: ReplicationMetrics | None = None
        self.metrics_file: str | None = None

    def once(self, *, again: bool, told: Told | None = None) -> None:
        """Make rounds until one has nothing to complain of; raises ``Conflict`` if ten were not enough."""
        directory = JobAdmin(self._opened.files, None, self._opened.patience).directory(self._job)
        known = {each.name for each in directory.list(SPARK)}
        if missing := sorted({*self._queries} - known):
            raise no_checkpoint(self._job, missing[0], known)
        with (
            led(self._opened, replica_of(self._job), cause="replicated", files=self._to, alone=True) as leadership,
            self._replicator(leadership, again=again, told=told) as replicator,
        ):
            for _ in range(TRIES):
                done = self._round(replicator)
                if done and not any(each.problem for each in done):
                    return
        no_query = f"job {self._job!r} has no checkpoint of a query, or its leader changes."
        raise Conflict(f"{TRIES} rounds were not enough: {done[0].problem if done else no_query} Run it again.")

    def run(self, interval: float, *, again: bool) -> None:
        """Make rounds until the replica was promoted, and raise that; another process may take over, and back."""
        while True:
            try:
                with (
                    lead(replica_of(self._job), files=self._to, zookeeper="") as leadership,
                    self._replicator(leadership, again=again) as replicator,
                ):
                    again = False
                    while True:
                        self._round_or_complaint(replicator, leadership)
                        BOOT_CLOCK.sleep(interval)
            except Promoted:
                raise
            except (Fenced, NotLeader) as error:
                self._complain(f"it waits for its turn. {error}")
            except (StoreError, NoLeader) as error:
                self._complain(f"it tries again. {error}")
                BOOT_CLOCK.sleep(interval)

    def _round_or_complaint(self, replicator: "Replicator", leadership: Leadership) -> None:
        """Make a round; if the source cannot be read, keep the lease: a promotion must not race with new epochs."""
        try:
            self._round(replicator)
        except (StoreError, NoLeader) as error:
            if not leadership.is_leader():
                raise
            self._complain(f"it tries again. {error}")

    @contextlib.contextmanager
    def _replicator(self, leadership: Leadership, *, again: bool, told: Told | None = None) -> Iterator[Replicator]:
        timeout = self._opened.patience
        with (
            self._opened.open(self._opened.files.uri, workers=WORKERS) as here,
            self._opened.open(self._to, workers=WORKERS) as there,
        ):
            source = ReplicaSource(JobAdmin(here, None, timeout), here, self._job, self._budget, self._queries)
            directory = JobAdmin(there, None, timeout).directory(leadership.job, leadership.own.leader)
            if again:
                unmark(directory)
            yield Replicator(source, there, leadership, directory, retained=self._retain, told=told)

    def _round(self, replicator: Replicator) -> list[QueryRound]:
        done = replicator.round()
        self._done(done)
        if self.metrics_file is not None:
            from prometheus_client import CollectorRegistry  # noqa: PLC0415

            self._metrics = self._metrics or ReplicationMetrics(CollectorRegistry(), self._job)
            for each in replicator.report.queries:
                self._metrics.set(each.name, each.level_at, each.behind)
            try:
                self._metrics.write(self.metrics_file)
            except OSError as error:
                raise LeaderError(f"{self.metrics_file} cannot be written: {error.strerror}.") from error
        return done


def check(opened: Stores, job: str, to: str) -> None:
    """Check that a job can have a replica below a root."""
    check_job(replica_of(check_job(job)))
    with opened.open(to) as there:
        check_bulk(there.uri)
        check_bulk(opened.files.uri)
        if there.uri.rstrip("/") == opened.files.uri.rstrip("/"):
            raise Invalid(f"{to} is the root of job {job!r} itself: give that of the other side.")
    JobAdmin(opened.files, None, opened.patience).directory(job)


def report_of(there: JobAdmin, job: str, to: str) -> tuple[bool, ReplicaReport]:
    """Return whether the replica of a job at the other side was promoted, and the report of the last round."""
    try:
        directory = there.directory(replica_of(job))
        return promoted(directory), decoded(directory.read(REPORT))
    except (NoLeader, NotFound) as error:
        raise LeaderError(f"There is no replica of job {job!r} at {to}, or no round has ended there yet.") from error
