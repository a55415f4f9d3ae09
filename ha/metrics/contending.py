"""Metrics of a process that contends: what happens to its leaderships, and how they stand.

What happens is seen at the two sides of a contender: the commands that it has executed, and what it tells. All of that
comes on one thread, its own.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Histogram

from ha.metrics.changes import LeaderChanges
from leader import names
from leader.candidacy import Leads
from leader.environment import Environment, FilesAnswer, Line, NodeAnswer, Sign, Timer
from leader.events import Delete, FilesCommand, Grant, ListJob, MakeDirectory, Rename, Revoke
from leader.information import LeaderInformation
from leader.lease import Lease
from leader.names import LeaderDirectory
from leader.nodes import NodeCommand
from leader.whereabouts import Whereabouts
from store.clock import now
from store.errors import NotFound
from store.outcome import Outcome

TAKEOVER_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""A seizure and a claim are two renames: milliseconds, or as long as the store takes to come back."""

REASONS = ("released", "session-gone", "process-gone", "expired", "successor-absent", "own")
"""Why a lease may be free; see ``Observation.seizable``. Each is shown from the start: Prometheus takes the first value
that it sees for what always was, so the first takeover of a reason would be none to ``increase``."""


class ContendingMetrics:
    """What happens to the leaderships of one process."""

    def __init__(self, registry: CollectorRegistry, changes: LeaderChanges) -> None:
        self._changes = changes
        self._grants = Counter(
            "ha_grants",
            "Leaderships of this process that have begun, by why the lease was free: the word in ha history.",
            ["job_name", "reason"],
            registry=registry,
        )
        self._revocations = Counter(
            "ha_revocations", "Leaderships of this process that have ended.", ["job_name"], registry=registry
        )
        self._fenced = Counter(
            "ha_fenced_operations",
            "Writes of this process under an epoch of its own that HDFS refused, because a higher one had begun.",
            ["job_name"],
            registry=registry,
        )
        self._suspected = Counter(
            "ha_suspected",
            "Leaders whose process this one has found gone, and whose lease it seized before their session ended.",
            ["job_name"],
            registry=registry,
        )
        self._takeover = Histogram(
            "ha_takeover_seconds",
            "Time from when this process might seize the lease (given back, run out, or its session seen gone) until "
            "it leads. How long a death went unnoticed before, it cannot know: up to the session timeout or the ttl.",
            ["reason"],
            buckets=TAKEOVER_SECONDS,
            registry=registry,
        )
        for reason in REASONS:
            self._takeover.labels(reason)
        self._jobs: dict[str, _Job] = {}

    def environment(self, environment: Environment, contender: str) -> Environment:
        """Return the same environment, for the contender of that name, watched."""
        return _Environment(environment, contender, self._job, self._answered)

    def leads(self, leads: Leads) -> Leads:
        """Return the same listener, watched."""
        return _Leads(leads, self)

    def granted(self, job: str, grant: Grant, at: float) -> None:
        """Leadership begins."""
        state = self._job(job)
        state.session_id = grant.session_id
        self._grants.labels(job, grant.reason).inc()
        if state.seizing is not None:
            self._takeover.labels(grant.reason).observe(max(0.0, at - state.seizing[1]))
            state.seizing = None
        self._changes.saw(job, grant.epoch)

    def revoked(self, job: str, revoke: Revoke) -> None:
        """Leadership has ended; this may be said twice of the same."""
        state = self._job(job)
        if state.revoked != revoke.session_id:
            state.revoked = revoke.session_id
            self._revocations.labels(job).inc()

    def suspected(self, job: str) -> None:
        """The process of the leader was found to be gone."""
        self._suspected.labels(job).inc()

    def _job(self, job: str) -> "_Job":
        state = self._jobs.get(job)
        if state is None:
            state = self._jobs[job] = _Job()
            for reason in REASONS:
                self._grants.labels(job, reason)
            for counter in (self._revocations, self._fenced, self._suspected):
                counter.labels(job)
        return state

    def _answered(self, job: str, command: FilesCommand, outcome: Outcome[list[str] | None]) -> None:
        state = self._job(job)
        if isinstance(outcome.error, NotFound):
            state.missed(command)
        elif isinstance(command, ListJob) and outcome.done and (found := names.newest(outcome.value or [])):
            self._changes.saw(job, found.epoch)
            if found.epoch > state.refused >= 0:
                self._fenced.labels(job).inc()
            state.refused = -1


class _Job:
    """What is remembered of a job."""

    def __init__(self) -> None:
        self.session_id = ""
        self.revoked = ""
        self.refused = -1
        """The own epoch under which a write was refused; whether that was a fence shows in the next list."""
        self.seizing: tuple[Lease, float] | None = None
        """The lease that is being seized, and since when."""

    def seizes(self, command: FilesCommand, contender: str, at: float) -> None:
        """Note since when a lease is being seized; tries that follow each other are one."""
        if not isinstance(command, Rename):
            return
        before, after = (Lease.parse(path.rpartition("/")[2]) for path in (command.source, command.destination))
        if before is None or after is None or before.owner == after.owner:
            return
        again = self.seizing is not None and (before == self.seizing[0] or before.contender == contender)
        if not again:
            self.seizing = before, at

    def missed(self, command: FilesCommand) -> None:
        """What the command was to change is not there any more."""
        match command:
            case Rename(path, _) | MakeDirectory(path) | Delete(path):
                directory = LeaderDirectory.parse(path.partition("/")[0])
                if directory is not None and directory.session_id == self.session_id:
                    self.refused = directory.epoch


class _Environment:
    """Stands before whatever executes a contender's commands; what goes wrong here is no matter of the election."""

    def __init__(
        self,
        environment: Environment,
        contender: str,
        state: Callable[[str], _Job],
        answered: Callable[[str, FilesCommand, Outcome[list[str] | None]], None],
    ) -> None:
        self._environment = environment
        self._contender = contender
        self._state = state
        self._answered = answered

    def now(self) -> float:
        return self._environment.now()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        return self._environment.call_at(when, callback)

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        def told(outcome: Outcome[list[str] | None]) -> None:
            try:
                self._answered(job, command, outcome)
            finally:
                answer(outcome)

        try:
            self._state(job).seizes(command, self._contender, self.now())
        finally:
            self._environment.run_files(job, command, told)

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        self._environment.run_node(command, answer, changed)

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> Line:
        return self._environment.call(where, heard)


class _Leads:
    """Stands before who is told about leadership."""

    def __init__(self, leads: Leads, metrics: ContendingMetrics) -> None:
        self._leads = leads
        self._metrics = metrics

    def granted(self, job: str, grant: Grant) -> None:
        try:
            self._metrics.granted(job, grant, now())
        finally:
            self._leads.granted(job, grant)

    def revoked(self, job: str, revoke: Revoke) -> None:
        try:
            self._metrics.revoked(job, revoke)
        finally:
            self._leads.revoked(job, revoke)

    def asked(self, job: str, successor: str) -> None:
        self._leads.asked(job, successor)

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        self._leads.believed(job, leads_until, holds_until)

    def published(self, job: str, information: LeaderInformation) -> None:
        self._leads.published(job, information)

    def suspected(self, job: str, contender: str) -> None:
        try:
            self._metrics.suspected(job)
        finally:
            self._leads.suspected(job, contender)

    def said(self, job: str, sentence: str) -> None:
        self._leads.said(job, sentence)
