"""Canaries of a lease's names: which change is taken for a sign of life, and when a name begins a wait."""

from msgspec import structs

from leader.election.schedule import PollSchedule
from leader.election.state import PendingOperation
from leader.election.steps import Steps
from leader.layout.lease import Lease
from tests.system.simulation.canary import HAND, L1, S1, Canary, of
from tests.system.simulation.directed import draw_asked_while_dead, draw_forgotten_release

_change_lease = Steps._change_lease


def _any_change(self: Lease, earlier: Lease) -> bool:
    return self != earlier


def _unmarked_changes(self: Lease, earlier: Lease) -> bool:
    """Whatever lies below a mark is not looked at."""
    return self != earlier and not self.marks


def _renewed_under_marks(self: Steps, wanted: Lease | None, now: float) -> PendingOperation | None:
    """The holder's own changes keep the count."""
    holding = self._state.holding
    held = holding.present
    if held is None or wanted is None:
        return None
    rise = holding.next_sequence - held.sequence
    target = structs.replace(wanted, sequence=holding.next_sequence, marks=held.marks + rise if held.marks else 0)
    holding.send(target, now)
    return PendingOperation(self._rename_lease(held, target), lease=target)


def _paused_all_the_same(self: PollSchedule, now: float) -> None:
    del self, now


def _released_under_the_old_name(self: Steps, wanted: Lease | None, now: float) -> PendingOperation | None:
    pending = self._state.holding.pending(structs.replace(wanted, marks=0)) if wanted is not None else None
    if pending is None:
        return _change_lease(self, wanted, now)
    assert self._state.holding.present is not None, "a lease is pending while another one is there"
    return PendingOperation(self._rename_lease(self._state.holding.present, pending), lease=pending)


MARKS = (
    Canary("a mark is taken for a renewal", of(Lease, renewed_since=_any_change), L1, 10, draw_asked_while_dead),
    Canary(
        "a renewal below a mark is not seen", of(Lease, renewed_since=_unmarked_changes), S1, 60, draw_asked_while_dead
    ),
    Canary(
        "a holder's change counts as a mark",
        of(Steps, _change_lease=_renewed_under_marks),
        S1,
        60,
        draw_asked_while_dead,
    ),
    Canary(
        "a marked lease is not tried at once",
        of(PollSchedule, marked=_paused_all_the_same),
        L1,
        60,
        draw_asked_while_dead,
    ),
    Canary(
        "a release that was forgotten comes back under its old name",
        of(Steps, _change_lease=_released_under_the_old_name),
        HAND,
        60,
        draw_forgotten_release,
    ),
)
