"""Faults put into the election on purpose. A search that cannot find them proves nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from leader.election import Election
from leader.lease import Holding, Lease, Mode
from leader.observation import Observation
from leader.step import Phase, Step
from store.outcome import Outcome

_failed = Election._failed
_grant = Election._grant
_changed = Election._changed
_claim = Election._claim
_seize = Election._seize
_seizable = Observation.seizable

Answered = Outcome[list[str] | None]


def _uncapped(self: Holding) -> float:
    """A renewal that was sent does not count before it is known to be done."""
    if self.current is None:
        return float("-inf")
    return self._deadline(self.current, self._promises[self.current])


def _taken_for_refused(self: Election, step: Step, outcome: Answered, now: float) -> None:
    """A change of the lease whose outcome nobody knows is forgotten, as if it could not be executed any more."""
    if outcome.unknown and step.lease is not None and step.lease != self._holding.current:
        self._holding._promises.pop(step.lease, None)
    _failed(self, step, outcome, now)


def _taken_for_done(self: Election, step: Step, outcome: Answered, now: float) -> None:
    """A renewal whose outcome nobody knows counts as done."""
    if outcome.unknown and step.lease is not None and step.lease in self._holding and self.phase is Phase.LEADING:
        self._changed(step, now)
    else:
        _failed(self, step, outcome, now)


def _granted_late(self: Election, now: float) -> None:
    """Whoever claimed leads, whatever its own clock says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Holding, "until", lambda _: float("inf"))
        _grant(self, now)


def _counted_from_the_answer(self: Election, step: Step, now: float) -> None:
    """The lease counts from when the answer came, not from the start of the call."""
    if step.lease is not None and step.lease in self._holding:
        self._holding._promises[step.lease] = now
    _changed(self, step, now)


def _any_node(self: Observation, now: float) -> str | None:
    """Some session was seen gone: which one, nobody asks."""
    lease = self.lease
    if lease is not None and lease.mode is Mode.ZOOKEEPER and self._gone is not None:
        return "session-gone"
    return _seizable(self, now)


def _deadline_without_drift(self: Holding, lease: Lease, start: float) -> float:
    """The holder trusts its clock."""
    if lease.mode is Mode.RELEASED:
        return float("-inf")
    attested = self._attested.get(lease.attestation, float("-inf"))
    return min(start + lease.ttl, attested) if lease.mode is Mode.ZOOKEEPER else start + lease.ttl


def _not_attested(self: Holding, lease: Lease, start: float) -> float:
    """The session's confirmation does not limit the belief."""
    return float("-inf") if lease.mode is Mode.RELEASED else start + lease.ttl * (1 - self._drift)


# --- what only a NameNode that forgets reveals


def _see_and_confirm(self: Holding, lease: Lease) -> None:
    """A renewal that is listed is taken for done."""
    self.confirm(lease)


def _seize_or_hold(self: Election, now: float) -> Step | None:
    """A seizure that is listed is taken for done."""
    lease = self._observation.lease
    if lease is None or lease not in self._holding:
        return _seize(self, now)
    self._hold(lease, now)
    return self._act(now)


def _claim_or_grant(self: Election, now: float) -> Step | None:
    """A claim that is listed is taken for done."""
    if self.directory is None or self.directory.session_id != self.session_id:
        return _claim(self, now)
    self._grant(now)
    return None


def _any_pending(self: Holding, like: Lease) -> Lease | None:
    """Any entry is sent once more, also one that another was built on when it was shown."""
    least = self.present.sequence if self.present else 0
    for lease in self._promises:
        if lease.sequence > least and replace(lease, sequence=like.sequence) == like:
            return lease
    return None


@dataclass(frozen=True)
class Mutant:
    """One fault: what is replaced by what."""

    owner: type
    name: str
    by: Callable[..., Any]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Production with this fault in it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.owner, self.name, self.by)
            yield


MUTANTS = {
    "belief not capped when a renewal is sent": Mutant(Holding, "until", _uncapped),
    "unknown taken for refused": Mutant(Election, "_failed", _taken_for_refused),
    "unknown taken for done": Mutant(Election, "_failed", _taken_for_done),
    "granted whatever the clock says": Mutant(Election, "_grant", _granted_late),
    "counted from the answer": Mutant(Election, "_changed", _counted_from_the_answer),
    "any node that is gone": Mutant(Observation, "seizable", _any_node),
    "a holder without drift": Mutant(Holding, "_deadline", _deadline_without_drift),
    "belief not limited by the confirmation": Mutant(Holding, "_deadline", _not_attested),
    "a renewal that is listed is taken for done": Mutant(Holding, "see", _see_and_confirm),
    "a seizure that is listed is taken for done": Mutant(Election, "_seize", _seize_or_hold),
    "a claim that is listed is taken for done": Mutant(Election, "_claim", _claim_or_grant),
    "a renewal that another was built on is sent once more": Mutant(Holding, "pending", _any_pending),
}
