"""Metrics of a process that contends: what happens to its leaderships, how they stand, and restarts of its command."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.metrics.process_metrics import LeaderChanges
from ha.metrics.tables import Table, families
from leader.election import events
from leader.layout import names
from leader.layout.lease import Lease
from leader.layout.names import LeaderDirectory
from store.clock import now
from store.errors import NotFound

TAKEOVER_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""A seizure and a claim are two renames: they take milliseconds, or as long as the store needs to come back."""

REASONS = ("released", "session-gone", "process-gone", "expired", "successor-absent", "own")
"""Why a lease may be free; see ``RivalLease.expired_reason``.

Each is shown from the start: otherwise Prometheus' ``increase`` would miss the first takeover of a reason.
"""


class ContendingMetrics:
    """Counts what happens to the leaderships of one process; all of it happens on the contender's thread."""

    def __init__(
        self, registry: CollectorRegistry, changes: LeaderChanges, contender: str, clock: Callable[[], float] = now
    ) -> None:
        # changes: told of every grant and every epoch that is seen in HDFS.
        # contender: the process's own name.
        # clock: gives boot-clock seconds.
        self._changes = changes
        self._contender = contender
        self._clock = clock
        counter = partial(Counter, labelnames=["job_name"], registry=registry)
        self._grants = counter(
            "ha_grants",
            "Leaderships of this process that have begun, by why the lease was free, as in ha job history.",
            labelnames=["job_name", "reason"],
        )
        self._revocations = counter("ha_revocations", "Leaderships of this process that have ended.")
        self._fenced = counter(
            "ha_fenced_operations",
            "Writes of this process under its own epoch that HDFS refused: a higher one had begun.",
        )
        self._suspected = counter(
            "ha_suspected",
            "Leaders whose lease this process seized before their session ended: their process was gone.",
        )
        self._takeover = Histogram(
            "ha_takeover_seconds",
            "Time from when this process could seize the lease until it leads, without the detection.",
            ["reason"],
            buckets=TAKEOVER_SECONDS,
            registry=registry,
        )
        for reason in REASONS:
            self._takeover.labels(reason)
        self._jobs: dict[str, _Job] = {}

    def observe(self, job: str, happened: object) -> None:
        """Count what the contender has done: a :data:`leader.observer.Observer`."""
        match happened:
            case events.Rename():
                self._job(job).seizes(happened, self._contender, self._clock())
            case events.FilesDone(command, outcome) if isinstance(outcome.error, NotFound):
                self._job(job).missed(command)
            case events.FilesDone(events.ListJob(), outcome) if outcome.done:
                self._listed(job, outcome.value or [])
            case events.Grant():
                self._granted(job, happened)
            case events.Revoke(session_id):
                self._revoked(job, session_id)
            case events.Suspect():
                self._suspected.labels(job).inc()
            case _:
                self._job(job)

    def _granted(self, job: str, grant: events.Grant) -> None:
        state = self._job(job)
        state.session_id = grant.session_id
        self._grants.labels(job, grant.reason).inc()
        if state.seizing is not None:
            self._takeover.labels(grant.reason).observe(max(0.0, self._clock() - state.seizing[1]))
            state.seizing = None
        self._changes.saw(job, grant.epoch)

    def _revoked(self, job: str, session_id: str) -> None:
        """Count the end of a leadership once, even if the contender reports it twice."""
        state = self._job(job)
        if state.revoked != session_id:
            state.revoked = session_id
            self._revocations.labels(job).inc()

    def _listed(self, job: str, entries: list[str]) -> None:
        found, state = names.newest(entries), self._job(job)
        if found is None:
            return
        self._changes.saw(job, found.epoch)
        if found.epoch > state.refused >= 0:
            self._fenced.labels(job).inc()
        state.refused = -1

    def _job(self, job: str) -> "_Job":
        state = self._jobs.get(job)
        if state is None:
            state = self._jobs[job] = _Job()
            for reason in REASONS:
                self._grants.labels(job, reason)
            for counter in (self._revocations, self._fenced, self._suspected):
                counter.labels(job)
        return state


class _Job:
    """The memory of the metrics for one job."""

    def __init__(self) -> None:
        self.session_id = ""
        self.revoked = ""
        self.refused = -1  # the own epoch under which a write was refused; the next list shows whether that was a fence
        self.seizing: tuple[Lease, float] | None = None  # the lease that is being seized, and since when

    def seizes(self, command: events.Rename, contender: str, at: float) -> None:
        """Note since when a lease is being seized; tries that follow each other are one."""
        before, after = (Lease.parse(path.rpartition("/")[2]) for path in (command.source, command.destination))
        if before is None or after is None or before.owner == after.owner:
            return
        again = self.seizing is not None and (before == self.seizing[0] or before.contender == contender)
        if not again:
            self.seizing = before, at

    def missed(self, command: events.FilesCommand) -> None:
        """Note that the entry which the command was to change is gone."""
        match command:
            case events.Rename(path, _) | events.MakeDirectory(path) | events.Delete(path):
                directory = LeaderDirectory.parse(path.partition("/")[0])
                if directory is not None and directory.session_id == self.session_id:
                    self.refused = directory.epoch


def _copy_lag(status: Mapping[str, Any]) -> int | None:
    known = status["epoch"] is not None and status["copy_epoch"] is not None
    return status["epoch"] - status["copy_epoch"] if known else None


STATUS: Table[Mapping[str, Any]] = {
    "ha_is_leader": ("1 if this process leads the job, by its own clock; else 0.", lambda each: each["is_leader"]),
    "ha_epoch": ("Epoch of the job as this process last saw it in HDFS.", lambda each: each["epoch"]),
    "ha_belief_remaining_seconds": (
        "Time for which this process leads even if no store answers any more; 0 if it does not lead.",
        lambda each: each["belief_seconds"],
    ),
    "ha_copy_lag_epochs": (
        (
            "Epoch in HDFS less that of ZooKeeper's record, both as this process last saw them; below 0 if ZooKeeper "
            "is ahead; absent if it holds no record."
        ),
        _copy_lag,
    ),
    "ha_command_memory_bytes": (
        (
            "Memory of the command and of all processes it has started on this host, shared pages divided; 0 if it "
            "does not run."
        ),
        lambda each: each["command"] and each["command"]["memory_bytes"],
    ),
}

REPAIRS: Table[Mapping[str, Any]] = {
    "ha_copy_repairs": (
        "Times this process wrote its record in ZooKeeper again because it was gone or changed.",
        lambda each: each["copy_repairs"],
    )
}


class LeadershipStatus(Collector):
    """Shows how a process's leaderships stand whenever Prometheus asks."""

    def __init__(self, statuses: Callable[[], Mapping[str, Mapping[str, Any]]]) -> None:
        """Show what ``statuses`` returns: see :meth:`ha.daemon.process.ContendingProcess.statuses`."""
        self._statuses = statuses

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; raises what ``statuses`` raises."""
        rows = [([job], each) for job, each in self._statuses().items()]
        yield from families(GaugeMetricFamily, STATUS, ["job_name"], rows)
        yield from families(CounterMetricFamily, REPAIRS, ["job_name"], rows)
        meaning = "1 if ZooKeeper now attests this process's session, so that a lease may rely on it."
        for _, each in rows[:1]:  # one session serves all jobs
            yield GaugeMetricFamily("ha_zookeeper_attests", meaning, each["zookeeper"])


class CommandCounters:
    """Counts how often a job's command has failed, and was started again."""

    def __init__(self, registry: CollectorRegistry, job: str) -> None:
        counter = partial(Counter, labelnames=["job_name"], registry=registry)
        restarts = "Restarts of the command after a failure, within a leadership of this process."
        self._restarts = counter("ha_command_restarts", restarts).labels(job)
        failures = "Failures of the command while this process led: errors, and hangs for which it was killed."
        self._failures = counter("ha_command_failures", failures).labels(job)

    def restarted(self) -> None:
        """Count one more start."""
        self._restarts.inc()

    def failed(self) -> None:
        """Count one more failure."""
        self._failures.inc()
