"""Canaries of leadership: belief, session, the rival's lease, suspicion, seizures and claims."""

import dataclasses
from unittest.mock import patch

import msgspec

from leader.election import attestation, responses
from leader.election.attestation import SessionAttestor
from leader.election.election import Election
from leader.election.events import Command, Grant, HandOverRequested, Rename, RequestsFound
from leader.election.holding import Holding
from leader.election.ports import ProbeEvent
from leader.election.responses import FilesOutcome, Responses
from leader.election.rival import RivalLease
from leader.election.state import ElectionState, PendingOperation, Phase
from leader.election.steps import Steps
from leader.election.suspicion import ProcessMonitor
from leader.layout.bar import bars
from leader.layout.contact import ContactAddress
from leader.layout.information import Record
from leader.layout.lease import ANYBODY, Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.znodes import Node, NodeCommand, ReadNode, Sync
from store.outcome import Outcome
from tests.system.simulation.canary import BARS, FENCE, HAND, HEARD, L1, PAUSES, S1, S3, Canary, of
from tests.system.simulation.corners import always, draw_forgotten_renewal, draw_lapse, draw_unruly_clock
from tests.system.simulation.directed import draw_barred, draw_lost_switch
from tests.system.simulation.drawing import draw
from tests.system.simulation.plan import Plan

# --- the holder's belief


def _until_of_the_current_entry(self: Holding) -> float:
    current = self.current
    return float("-inf") if current is None else self._deadline(current, self._promises[current])


_failed = Responses._failed


def _failed_unknown_is_refused(
    self: Responses, operation: PendingOperation, outcome: FilesOutcome, now: float
) -> list[Command]:
    holding = self._state.holding
    if operation.lease is not None and outcome.unknown and operation.lease != holding.current:
        holding._promises.pop(operation.lease, None)
    return _failed(self, operation, outcome, now)


_on_response = Responses.on_response


def _on_response_unknown_is_done(self: Responses, outcome: FilesOutcome, now: float) -> list[Command]:
    operation = self._state.pending
    changes = operation is not None and (operation.lease is not None or operation.directory is not None)
    if changes and outcome.unknown:
        outcome = Outcome(None, None, outcome.started, outcome.ended)
    return _on_response(self, outcome, now)


def _grant_from_the_claim_on(self: ElectionState, now: float) -> list[Command]:
    del now
    if self.directory is None:
        return []
    self.holding._promises = dict.fromkeys(self.holding._promises, self.schedule.sent_at)
    self.phase = Phase.LEADING
    self.schedule.look_due = float("inf")
    self.announcement.begin(self.directory, self.seize_reason, self.contender)
    return [Grant(self.directory.epoch, self.session_id, self.seize_reason)]


def _deadline_without_drift(_: Holding, lease: Lease, start: float) -> float:
    return start + lease.ttl


def _expiry_without_drift(self: RivalLease) -> float:
    return float("inf") if self.lease is None else self._since + self.lease.ttl


def _send_anew(self: Holding, lease: Lease, start: float) -> None:
    self._promises[lease] = start
    self._highest = max(self._highest, lease.sequence)


_lose = ElectionState.lose


def _lose_to_others_only(self: ElectionState, now: float) -> list[Command]:
    return [] if self.phase is Phase.STEPPING_DOWN and now >= self.holding.until() else _lose(self, now)


# --- the session


_confirmed = SessionAttestor._confirmed


def _confirmed_until_lost(self: SessionAttestor, node: Node | None, now: float) -> None:
    _confirmed(self, node, now)
    if self.attestation.usable:
        self.attestation = msgspec.structs.replace(self.attestation, until=float("inf"))


def _disconnected_is_forgiven(self: SessionAttestor) -> None:
    self._next_due = float("inf")


_tick = SessionAttestor.tick


def _tick_without_sync(self: SessionAttestor, now: float) -> NodeCommand | None:
    command = _tick(self, now)
    if not isinstance(command, Sync):
        return command
    self._under_way = None
    return self._ask(ReadNode(self._path(), watch=True))


def _draw_without_suspicion(seed: int) -> Plan:
    """Draw a plan in which standbys cannot ask the leader itself whether it lives, as they do before they seize."""
    return dataclasses.replace(draw(seed), suspicion=False)


# --- the rival's lease


_expired_reason = RivalLease.expired_reason


def _expired_because_another_was_gone(self: RivalLease, now: float) -> str | None:
    if self.lease is not None and self.lease.attestation and self._gone is not None:
        return "session-gone"
    return _expired_reason(self, now)


def _observe_without_starting_anew(
    self: RivalLease, lease: Lease, at: float, contact: ContactAddress | None = None
) -> None:
    self.contact = contact
    if self.lease is None or lease.owner != self.lease.owner:
        self._since = at
    self.lease = lease


_record_listed = Responses._record_listed


def _record_listed_when_asked(
    self: Responses, directory: LeaderDirectory, outcome: FilesOutcome, now: float
) -> list[Command]:
    asked: FilesOutcome = Outcome(outcome.value, outcome.error, outcome.started, outcome.started)
    return _record_listed(self, directory, asked, now)


_seen = Responses._lease_seen_by_holder


def _seized_and_kept(self: Responses, lease: Lease, now: float) -> list[Command]:
    return [] if lease.owner != self._state.session_id else _seen(self, lease, now)


def _leader_until_the_belief_ends(self: ElectionState, now: float) -> bool:
    return now < self.holding.until()


_asked = Responses._lease_seen_by_holder


def _asked_to_look_and_told_nobody(self: Responses, lease: Lease, now: float) -> list[Command]:
    return [each for each in _asked(self, lease, now) if not isinstance(each, RequestsFound)]


def _asked_to_look_and_handed_over(self: Responses, lease: Lease, now: float) -> list[Command]:
    told = _asked(self, lease, now)
    return [HandOverRequested(ANYBODY) if isinstance(each, RequestsFound) else each for each in told]


def _released_to_anybody(self: RivalLease, lease: Lease, now: float) -> str:
    del self, lease, now
    return "released"


# --- pauses


def _seize_although_paused(self: Steps, now: float) -> PendingOperation | None:
    state = self._state
    theirs, reason = state.rival.lease, state.rival.expired_reason(now)
    if theirs is None or reason is None or now < state.schedule.held_off_until:
        return None
    return self._take(theirs, reason, now)


_give_back = Steps._give_back


def _give_back_and_resume(self: Steps, now: float) -> PendingOperation | None:
    held = self._state.holding.present
    if held is not None and held.paused:
        released = msgspec.structs.replace(held, mode=Mode.RELEASED, ttl_ms=0, attestation="", successor="")
        return self._change_lease(released, now)
    return _give_back(self, now)


def _may_become_although_paused(self: RivalLease, released: Lease) -> bool:
    return self.lease is not None and self.owner == released.owner and released.sequence > self.lease.sequence


# --- bars


def _bars_ignored(_: Responses, record: Record, now: float) -> list[Command]:
    del record, now
    return []


def _barred_for_ever(record: Record, contender: str, now: float, wall: float) -> float:
    del now, wall
    return float("inf") if contender in bars(record) else float("-inf")


# --- fast suspicion


_ended = ProcessMonitor._on_end


def _ended_is_gone(self: ProcessMonitor, event: ProbeEvent, now: float) -> None:
    if self._met and event is ProbeEvent.BROKEN:
        self.close()  # a monitor reports once, and ends with that
        self._on_gone()
    else:
        _ended(self, event, now)


def _silence_is_gone(self: ProcessMonitor, event: ProbeEvent, now: float) -> None:
    if self._broke_at is not None and event is ProbeEvent.SILENT:
        self.close()  # a monitor reports once, and ends with that
        self._on_gone()
    else:
        _ended(self, event, now)


def _any_refusal_is_gone(self: ProcessMonitor, event: ProbeEvent, now: float) -> None:
    if event is ProbeEvent.REFUSED:
        self.close()  # a monitor reports once, and ends with that
        self._on_gone()
    else:
        _ended(self, event, now)


# --- the claim


_job_listed = Responses._job_listed


def _job_listed_and_remembered(self: Responses, outcome: FilesOutcome, now: float) -> list[Command]:
    commands = _job_listed(self, outcome, now)
    if self._state.directory is not None and not hasattr(self._state, "listed"):
        self._state.listed = self._state.directory.epoch  # type: ignore[attr-defined]
    return commands


def _claim_as_listed_before(self: Steps, now: float) -> PendingOperation | None:
    del now
    state = self._state
    if state.directory is None:
        return None
    mine = LeaderDirectory(getattr(state, "listed", state.directory.epoch) + 1, state.session_id)
    return PendingOperation(Rename(state.directory.name, mine.name), directory=mine)


def _claim_afresh_after_a_release(self: Steps, now: float) -> PendingOperation | None:
    del now
    state = self._state
    if state.directory is None:
        return None
    epoch = 1 if state.seize_reason == "released" else state.directory.epoch + 1
    mine = LeaderDirectory(epoch, state.session_id)
    renames = mine != state.directory
    return PendingOperation(Rename(state.directory.name, mine.name), directory=mine) if renames else None


# --- unacknowledged changes


_seize = Steps._seize


def _seize_or_hold(self: Steps, now: float) -> PendingOperation | None:
    state = self._state
    if (lease := state.rival.lease) is not None and lease in state.holding:
        assert not state.hold(lease, now), "nothing is said of a seizure"
        return self._act(now)
    return _seize(self, now)


_next_commands = Election._next_commands


def _claim_or_grant(self: Election, now: float) -> list[Command]:
    """Grant a listed claim in place of a change that depends on it."""
    state, schedule = self.state, self.state.schedule
    acts = state.pending is None and schedule.retry_at <= now < schedule.look_due and not state.job_missing
    if acts and state.phase is Phase.CLAIMING and state.claim_is_listed:
        return state.grant(now)
    return _next_commands(self, now)


LEADERSHIP = (
    Canary(
        "belief is not capped when a change is sent",
        of(Holding, until=_until_of_the_current_entry),
        S1,
        30,
        draw_lost_switch,
    ),
    Canary("an unknown outcome is taken for refused", of(Responses, _failed=_failed_unknown_is_refused), S1, 500),
    Canary("an unknown outcome is taken for done", of(Responses, on_response=_on_response_unknown_is_done), S1, 60),
    Canary("a claim is not checked against the own lease", of(ElectionState, grant=_grant_from_the_claim_on), S1, 300),
    Canary(
        "clocks are taken to be exact",
        lambda: [
            patch.object(Holding, "_deadline", _deadline_without_drift),
            patch.object(RivalLease, "expiry", _expiry_without_drift),
        ],
        S1,
        60,
    ),
    Canary(
        "LOST is awaited instead of the own session clock",
        of(SessionAttestor, _confirmed=_confirmed_until_lost, disconnected=_disconnected_is_forgiven),
        S1,
        60,
    ),
    Canary(
        "a confirmation is read without sync",
        of(SessionAttestor, tick=_tick_without_sync),
        S1,
        320,
        _draw_without_suspicion,
    ),
    Canary("the last confirmation is believed as if all had heard it", of(attestation, HEARD_AFTER=0.0), S1, 1000),
    Canary(
        "it seizes without reading the node after the lease",
        of(RivalLease, expired_reason=_expired_because_another_was_gone),
        S1,
        60,
    ),
    Canary(
        "a connection that broke is taken for a process that ended", of(ProcessMonitor, _on_end=_ended_is_gone), S1, 60
    ),
    Canary(
        "a host that is silent is taken for a process that ended",
        of(ProcessMonitor, _on_end=_silence_is_gone),
        S1,
        200,
    ),
    Canary(
        "a host that never showed the process is believed", of(ProcessMonitor, _on_end=_any_refusal_is_gone), S1, 60
    ),
    Canary(
        "a lease counts from the start of the list", of(Responses, _record_listed=_record_listed_when_asked), S1, 200
    ),
    Canary("a leader works until its belief ends", of(ElectionState, is_leader=_leader_until_the_belief_ends), S1, 30),
    Canary("a renewed lease does not begin anew", of(RivalLease, observe=_observe_without_starting_anew), S1, 30),
    Canary(
        "a stale listing is used for the claim",
        lambda: [
            patch.object(Responses, "_job_listed", _job_listed_and_remembered),
            patch.object(Steps, "_claim", _claim_as_listed_before),
        ],
        S3,
        30,
    ),
    Canary("a released lease lowers the epoch", of(Steps, _claim=_claim_afresh_after_a_release), S3, 60),
    Canary("a seizure that is listed is taken for done", of(Steps, _seize=_seize_or_hold), S1, 500),
    Canary("a claim that is listed is taken for done", of(Election, _next_commands=_claim_or_grant), S3, 60),
    Canary(
        "a leader is not told of a request",
        of(Responses, _lease_seen_by_holder=_asked_to_look_and_told_nobody),
        HEARD,
        60,
    ),
    Canary(
        "each request is taken for one to hand over",
        of(Responses, _lease_seen_by_holder=_asked_to_look_and_handed_over),
        HEARD,
        60,
    ),
    Canary("a standby seizes the lease of a paused job", of(Steps, _seize=_seize_although_paused), PAUSES, 120),
    Canary(
        "a leader that gives its lease back ends the pause", of(Steps, _give_back=_give_back_and_resume), PAUSES, 300
    ),
    Canary(
        "a standby seizes a paused lease of which it has heard",
        of(RivalLease, may_become=_may_become_although_paused),
        PAUSES,
        300,
    ),
    Canary("a barred contender seizes", of(Responses, _barred=_bars_ignored), BARS, 20, draw_barred),
    Canary("a bar never ends", of(responses, barred_until=_barred_for_ever), L1, 30, draw_barred),
    Canary(
        "a renewal that is sent again counts anew", of(Holding, send=_send_anew), S1, 10, always(draw_forgotten_renewal)
    ),
    Canary(
        "a belief that has run out is kept", of(ElectionState, lose=_lose_to_others_only), L1, 10, always(draw_lapse)
    ),
    Canary(
        "a leader whose lease was seized goes on",
        of(Responses, _lease_seen_by_holder=_seized_and_kept),
        FENCE,
        20,
        always(draw_unruly_clock),
    ),
    Canary("a released lease is seized out of turn", of(RivalLease, _released_reason=_released_to_anybody), HAND, 100),
)
