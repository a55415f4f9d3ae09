"""Mutants: elections with a planted fault. A search that cannot find them proves nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from leader.election.election import Election
from leader.election.events import Command
from leader.election.holder_check import HolderCheck
from leader.election.holding import Holding
from leader.election.responses import FilesOutcome, Responses
from leader.election.rival import RivalLease
from leader.election.state import ElectionState, PendingOperation, Phase
from leader.election.steps import Steps
from leader.layout.lease import Lease, Mode
from leader.timing import NEVER, PAST

_failed = Responses._failed
_grant = ElectionState.grant
_changed = Responses._changed
_next_commands = Election._next_commands
_seize = Steps._seize
_expired_reason = RivalLease.expired_reason


def _uncapped(self: Holding) -> float:
    """A renewal that was sent does not count before it is known to be done."""
    if self.current is None:
        return float("-inf")
    return self._deadline(self.current, self._promises[self.current])


def _taken_for_refused(
    self: Responses, operation: PendingOperation, outcome: FilesOutcome, now: float
) -> list[Command]:
    """A change of the lease whose outcome nobody knows is forgotten, as if it could not be executed any more."""
    holding = self._state.holding
    if outcome.unknown and operation.lease is not None and operation.lease != holding.current:
        holding._promises.pop(operation.lease, None)
    return _failed(self, operation, outcome, now)


def _taken_for_done(self: Responses, operation: PendingOperation, outcome: FilesOutcome, now: float) -> list[Command]:
    """A renewal whose outcome nobody knows counts as done."""
    state = self._state
    renews = operation.lease is not None and operation.lease in state.holding and state.phase is Phase.LEADING
    return self._changed(operation, now) if outcome.unknown and renews else _failed(self, operation, outcome, now)


def _granted_late(self: ElectionState, now: float) -> list[Command]:
    """A contender that claimed leads, whatever its own clock says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Holding, "until", lambda _: float("inf"))
        return _grant(self, now)


def _counted_from_the_answer(self: Responses, operation: PendingOperation, now: float) -> list[Command]:
    """The lease counts from when the answer came, not from the start of the call."""
    holding = self._state.holding
    if operation.lease is not None and operation.lease in holding:
        holding._promises[operation.lease] = now
    return _changed(self, operation, now)


def _any_node(self: RivalLease, now: float) -> str | None:
    """Any session that was seen gone counts, whichever it was."""
    lease = self.lease
    if lease is not None and lease.mode is Mode.ZOOKEEPER and self._gone is not None:
        return "session-gone"
    return _expired_reason(self, now)


def _deadline_without_drift(self: Holding, lease: Lease, start: float) -> float:
    """The holder trusts its clock."""
    if lease.mode is Mode.RELEASED:
        return float("-inf")
    attested = self._attested.get(lease.attestation, float("-inf"))
    return min(start + lease.ttl, attested) if lease.mode is Mode.ZOOKEEPER else start + lease.ttl


def _not_attested(self: Holding, lease: Lease, start: float) -> float:
    """The session's confirmation does not limit the belief."""
    return float("-inf") if lease.mode is Mode.RELEASED else start + lease.ttl * (1 - self._drift)


def _see_and_confirm(self: Holding, lease: Lease) -> None:
    """A renewal that is listed is taken for done."""
    self.confirm(lease)


def _seize_or_hold(self: Steps, now: float) -> PendingOperation | None:
    """A seizure that is listed is taken for done."""
    state = self._state
    lease = state.rival.lease
    if lease is None or lease not in state.holding:
        return _seize(self, now)
    assert not state.hold(lease, now), "nothing is said of a seizure"
    return self._act(now)


def _claim_or_grant(self: Election, now: float) -> list[Command]:
    """A claim that is listed is taken for done, where it would be followed by a change that depends on it."""
    state, schedule = self.state, self.state.schedule
    acts = state.pending is None and schedule.retry_at <= now < schedule.look_due and not state.job_missing
    if acts and state.phase is Phase.CLAIMING and state.claim_is_listed:
        return state.grant(now)
    return _next_commands(self, now)


def _any_pending(self: Holding, like: Lease) -> Lease | None:
    """Any entry is sent once more, also one that another was built on when it was shown."""
    least = self.present.sequence if self.present else 0
    for lease in self._promises:
        if lease.sequence > least and replace(lease, sequence=like.sequence) == like:
            return lease
    return None


def _unasked(self: HolderCheck) -> float:
    """A lease is seized as soon as its node is gone, whoever could be asked."""
    del self
    return PAST


def _at_once(self: HolderCheck) -> float:
    """A holder that answers has no time to renew its lease."""
    return NEVER if self._lives is None else self._began


@dataclass(frozen=True)
class Mutant:
    owner: type
    name: str
    by: Callable[..., Any]

    @contextmanager
    def planted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.owner, self.name, self.by)
            yield


MUTANTS = {
    "belief not capped when a renewal is sent": Mutant(Holding, "until", _uncapped),
    "unknown taken for refused": Mutant(Responses, "_failed", _taken_for_refused),
    "unknown taken for done": Mutant(Responses, "_failed", _taken_for_done),
    "granted whatever the clock says": Mutant(ElectionState, "grant", _granted_late),
    "counted from the answer": Mutant(Responses, "_changed", _counted_from_the_answer),
    "any node that is gone": Mutant(RivalLease, "expired_reason", _any_node),
    "a holder without drift": Mutant(Holding, "_deadline", _deadline_without_drift),
    "belief not limited by the confirmation": Mutant(Holding, "_deadline", _not_attested),
    "a renewal that is listed is taken for done": Mutant(Holding, "see", _see_and_confirm),
    "a seizure that is listed is taken for done": Mutant(Steps, "_seize", _seize_or_hold),
    "a claim that is listed is taken for done": Mutant(Election, "_next_commands", _claim_or_grant),
    "a renewal that another was built on is sent once more": Mutant(Holding, "pending", _any_pending),
    "a lease is seized and nobody is asked": Mutant(HolderCheck, "ends", _unasked),
    "a leader that answers has no time to renew": Mutant(HolderCheck, "ends", _at_once),
}
