"""Canaries of escalation: what is counted of a job's failures, how long the next leader waits, and when it gives up."""

from collections.abc import Callable
from contextlib import suppress

from ha.sidecar.escalation import Escalation
from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import NotLeader
from leader.job.failed_attempts import Attempts, FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.errors import StoreError
from tests.system.simulation.canary import Canary, Patch, of
from tests.system.simulation.escalation_plans import draw_escalated

TRIED = frozenset({"TRIED"})

_pause, _begin, _forget = Escalation.pause, JobStatusUpdater.begin, FailedAttempts.forget


def _try_once(
    self: JobStatusUpdater, leader: LeaderDirectory, what: str, action: Callable[[FencedDirectory], None]
) -> bool:
    del what
    with suppress(StoreError, NotLeader):
        action(self.directory(leader))
    return True


def _load_without_batches(self: FailedAttempts) -> Attempts:
    return self.shown()[0]


def _pause_of_this_leader(self: Escalation, leader: LeaderDirectory) -> float | None:
    return _pause(self, leader) and 0.0


def _begin_and_forget(self: JobStatusUpdater, leader: LeaderDirectory) -> bool:
    with suppress(StoreError, NotLeader):
        _forget(FailedAttempts(self.directory(leader)))
    return _begin(self, leader)


def _hopeless_too(self: Attempts) -> int:
    return self.failures


def _canary(name: str, patches: Callable[[], list[Patch]], within: int = 60) -> Canary:
    return Canary(name, patches, TRIED, within, draw_escalated)


ESCALATIONS = (
    _canary("a failure is counted in one try", of(JobStatusUpdater, keep_trying=_try_once)),
    _canary("a batch counts for nothing at a grant", of(FailedAttempts, load=_load_without_batches), within=200),
    _canary("a new leader does not wait", of(Escalation, pause=_pause_of_this_leader)),
    _canary("a change of leader forgets the failures", of(JobStatusUpdater, begin=_begin_and_forget)),
    _canary("a batch does not begin the count anew", of(FailedAttempts, _batches=lambda _: "")),
    _canary("what no restart mends uses up attempts", of(Attempts, used=property(_hopeless_too))),
)
