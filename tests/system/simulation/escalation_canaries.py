"""Canaries of escalation: what is counted of a job's failures, how long the next leader waits, and when it gives up."""

from collections.abc import Callable
from contextlib import suppress

from ha.sidecar.failure_count import FailureCount
from ha.sidecar.job_status import JobStatusUpdater
from leader.errors import NotLeader
from leader.job.failed_attempts import Attempts, FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from store.errors import StoreError
from tests.system.simulation.canary import Canary, Patch, of
from tests.system.simulation.escalation_plans import draw_escalated, draw_escalated_back, draw_often_failed
from tests.system.simulation.plan import Plan

TRIED = frozenset({"TRIED"})

_pause, _begin, _add, _forget = FailureCount.pause, JobStatusUpdater.begin, FailedAttempts.add, FailedAttempts.forget

_count, _reconcile = FailureCount.add, JobStatusUpdater.reconcile

_granted: dict[int, int] = {}
"""The epoch that a sidecar was granted, and has not taken up."""


def _try_once(
    self: JobStatusUpdater, leader: LeaderDirectory, what: str, action: Callable[[FencedDirectory], None]
) -> bool:
    del what
    with suppress(StoreError, NotLeader):
        action(self.directory(leader))
    return True


def _load_without_batches(self: FailedAttempts) -> Attempts:
    return self.shown()[0]


def _pause_of_this_leader(self: FailureCount, leader: LeaderDirectory) -> tuple[float | None, bool]:
    pause, failed = _pause(self, leader)
    return pause and 0.0, failed


def _begin_and_forget(self: JobStatusUpdater, leader: LeaderDirectory) -> bool:
    with suppress(StoreError, NotLeader):
        _forget(FailedAttempts(self.directory(leader)))
    return _begin(self, leader)


def _add_anew(self: FailedAttempts, cause: str, host: str, seconds: float, remedy: str = "") -> Attempts:
    self._doubted = None
    return _add(self, cause, host, seconds, remedy)


def _forget_nothing(self: object, *_: object) -> None:
    """The count stays."""


def _pause_without_a_look(self: FailureCount, leader: LeaderDirectory) -> tuple[float | None, bool]:
    most, self._most = self._most, 10**9
    try:
        return _pause(self, leader)
    finally:
        self._most = most


def _pause_without_end(self: Attempts) -> float:
    return 0.0 if self.failures <= 1 else 2.0 ** (self.failures - 2)


def _reconcile_and_forget(self: JobStatusUpdater, leader: LeaderDirectory) -> None:
    with suppress(StoreError, NotLeader):
        _forget(FailedAttempts(self.directory(leader)))
    _reconcile(self, leader)


def _pause_and_note(self: FailureCount, leader: LeaderDirectory) -> tuple[float | None, bool]:
    _granted[id(self)] = leader.epoch
    return _pause(self, leader)


def _count_after_a_grant(
    self: FailureCount, leader: LeaderDirectory, cause: str, seconds: float, remedy: str = ""
) -> bool:
    return _granted.get(id(self)) == leader.epoch and _count(self, leader, cause, seconds, remedy)


def _hopeless_too(self: Attempts) -> int:
    return self.failures


def _canary(
    name: str, patches: Callable[[], list[Patch]], within: int = 60, plan: Callable[[int], Plan] = draw_escalated
) -> Canary:
    return Canary(name, patches, TRIED, within, plan)


ESCALATIONS = (
    _canary("a failure is counted in one try", of(JobStatusUpdater, keep_trying=_try_once)),
    _canary("a batch counts for nothing at a grant", of(FailedAttempts, load=_load_without_batches), within=400),
    _canary("a new leader does not wait", of(FailureCount, pause=_pause_of_this_leader)),
    _canary("a change of leader forgets the failures", of(JobStatusUpdater, begin=_begin_and_forget)),
    _canary("a batch does not begin the count anew", of(FailedAttempts, _batches=lambda _: "")),
    _canary("what no restart mends uses up attempts", of(Attempts, used=property(_hopeless_too))),
    _canary("a job that runs again keeps its failures", of(FailedAttempts, forget=_forget_nothing)),
    _canary("a new leader does not give up", of(FailureCount, pause=_pause_without_a_look), within=200),
    _canary("the pause grows without end", of(Attempts, pause=property(_pause_without_end)), plan=draw_often_failed),
    _canary("a long run begins nothing anew", of(FailureCount, forget=_forget_nothing), plan=draw_often_failed),
    _canary("a failure in doubt is counted once more", of(FailedAttempts, add=_add_anew), within=800),
    _canary(
        "a sidecar that comes back forgets the failures",
        of(JobStatusUpdater, reconcile=_reconcile_and_forget),
        within=100,
        plan=draw_escalated_back,
    ),
    _canary(
        "the failure of a command that was taken up is not counted",
        of(FailureCount, pause=_pause_and_note, add=_count_after_a_grant),
        within=100,
        plan=draw_escalated_back,
    ),
    _canary("a job is never given up", of(JobStatusUpdater, give_up=lambda *_: False)),
)
