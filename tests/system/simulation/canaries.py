"""Canaries: mutants of the protocol that each break one rule. A simulator that misses one proves nothing.

The plans are those that test the protocol itself. ``within`` is about three times the number of seeds that a canary
needed when it was measured, so that a change of the plans does not fail a test by chance.

Two rules have no canary, because other rules defend them too; this was tried. A standby asks for the leader's node with
a ``sync``: its own confirmations bring its server up to date as well. A wiped ZooKeeper is not taken for dead sessions:
a new session has to settle first, and by then the leader has switched its lease or its belief is over. A third rule, by
which a confirmation is two syncs, needs more luck than a thousand seeds have; its plan is among the regressions.
"""

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Self
from unittest.mock import patch

import msgspec

from ha.agent.agent import snapshot_of
from leader.election import attestation
from leader.election.announcement import Announcement, Change
from leader.election.attestation import SessionAttestor
from leader.election.election import Election
from leader.election.events import Command, Grant, Rename
from leader.election.holding import Holding
from leader.election.mirror import Mirror
from leader.election.ports import ProbeEvent
from leader.election.responses import FilesOutcome, Responses
from leader.election.rival import RivalLease
from leader.election.state import ElectionState, PendingOperation, Phase
from leader.election.steps import Steps
from leader.election.suspicion import ProcessMonitor
from leader.job.checkpoints import Checkpoints
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.checkpoint_list import CheckpointList
from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation
from leader.layout.lease import Lease
from leader.layout.names import LeaderDirectory
from leader.layout.znodes import DeleteNode, Node, NodeCommand, ReadNode, Sync
from leader.lookup.answers import Look, Snapshot, Source
from leader.lookup.hdfs_lookup import HdfsLookup
from leader.lookup.leader_view import LeaderView, Verdict
from leader.lookup.watch import Watch
from store.outcome import Outcome
from tests.system.simulation import executor
from tests.system.simulation.plan import (
    Plan,
    draw,
    draw_agent_without_news,
    draw_frozen_question,
    draw_new_reader_without_hdfs,
)

Patch = AbstractContextManager[object]


@dataclass(frozen=True)
class Canary:
    """A rule that is broken.

    Attributes:
        name: the mutant's mistake.
        patches: context managers that plant the mistake.
        breaks: guarantees; a run must break one of them.
        within: number of seeds, from 0, within which it must show.
        plan: draws the plan of a seed; most mutants show in those that test the protocol itself.
    """

    name: str
    patches: Callable[[], list[Patch]]
    breaks: frozenset[str]
    within: int
    plan: Callable[[int], Plan] = draw

    def __enter__(self) -> Self:
        stack = ExitStack()
        for each in self.patches():
            stack.enter_context(each)
        object.__setattr__(self, "_stack", stack)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()  # type: ignore[attr-defined]


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


def _leader_until_the_belief_ends(self: ElectionState, now: float) -> bool:
    return now < self.holding.until()


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


_peek = Checkpoints._peek


def _peek_and_acknowledge(self: Checkpoints) -> object:
    found = _peek(self)
    self._acknowledged.update({query: entries[-1] for query, entries in found.entries.items()})
    return found


def _unknown_is_forgotten(self: Announcement, change: Change) -> None:
    del self, change


# --- mirrors and checkpoints


_next = Mirror._next


def _next_deletes_whatever_is_there(self: Mirror, now: float) -> NodeCommand | None:
    if self._wanted is None and self._sent is not None and self._read and self._node is not None:
        return DeleteNode(self.path, self._node.version)
    return _next(self, now)


def _published_before_hdfs(self: Announcement) -> LeaderInformation | None:
    information = self.information
    if information is None or information.version == self._published_version:
        return None
    self._published_version = information.version
    return information


def _drop_before_adding(self: Checkpoints, found: CheckpointList, entry: CheckpointEntry) -> None:
    for each in found.entries.get(entry.checkpoint.query, ()):
        self._delete(each.name)


def _newest_gives_way(self: Checkpoints, found: CheckpointList, entry: CheckpointEntry) -> CheckpointEntry | None:
    entries = found.entries.get(entry.checkpoint.query, ())
    return entries[-1] if len(entries) >= self._most else None


def _released_to_anybody(self: RivalLease, lease: Lease, now: float) -> str:
    del self, lease, now
    return "released"


def _read_add_write(self: Checkpoints) -> int:
    number = self._read().next_id
    self._make(f"next={number + 1}").result()
    self._delete(f"next={number}")
    return number


# --- readers


def _believe_all_of_zookeeper(self: LeaderView, information: LeaderInformation, started: float, at: float) -> Verdict:
    version = (information.epoch, information.session_id)
    self._learn(information, version, Source.ZOOKEEPER, started, at, verified=False)
    self.directory = LeaderDirectory(information.epoch, information.session_id)
    return Verdict.BELIEVED


_merge_zookeeper = LeaderView.merge_zookeeper


def _believe_without_verification(
    self: LeaderView, information: LeaderInformation, started: float, at: float
) -> Verdict:
    verdict = _merge_zookeeper(self, information, started, at)
    if verdict is Verdict.UNVERIFIED:
        self._learn_from_zookeeper(information, started, at, verified=False)
        return Verdict.BELIEVED
    return verdict


def _believe_nothing_without_hdfs(self: LeaderView, information: LeaderInformation, started: float, at: float) -> bool:
    del self, information, started, at
    return False


def _believe_all_of_an_agent(self: LeaderView, snapshot: Snapshot) -> bool:
    if snapshot.information is not None:
        version = (snapshot.epoch, snapshot.session_id)
        at = snapshot.at
        self._learn(snapshot.information, version, Source.SNAPSHOT, at, at, verified=snapshot.verified)
    return True


def _snapshot_for_ever(job: str, look: Look, fresh: float) -> Snapshot:
    return msgspec.structs.replace(snapshot_of(job, look, fresh), good_until=float("inf"))


def _no_audit(self: HdfsLookup) -> None:
    del self


_look = Watch._look


def _look_of_the_answers_age(self: Watch) -> Look:
    return msgspec.structs.replace(_look(self), started=self._clock.now())


def _draw_without_suspicion(seed: int) -> Plan:
    """Draw a plan in which standbys cannot ask the leader itself whether it lives, as they do before they seize."""
    return dataclasses.replace(draw(seed), suspicion=False)


def _of(owner: object, **replaced: object) -> Callable[[], list[Patch]]:
    return lambda: [patch.object(owner, name, value) for name, value in replaced.items()]


S1, S3, S4, S5 = frozenset({"S1"}), frozenset({"S3"}), frozenset({"S4"}), frozenset({"S5"})
R1, R2, R3, R4 = frozenset({"R1"}), frozenset({"R2"}), frozenset({"R3"}), frozenset({"R4"})
HAND, KEPT = frozenset({"HAND"}), frozenset({"KEPT"})

CANARIES = (
    Canary("belief is not capped when a renewal is sent", _of(Holding, until=_until_of_the_current_entry), S1, 300),
    Canary("an unknown outcome is taken for refused", _of(Responses, _failed=_failed_unknown_is_refused), S1, 500),
    Canary("an unknown outcome is taken for done", _of(Responses, on_response=_on_response_unknown_is_done), S1, 60),
    Canary("a claim is not checked against the own lease", _of(ElectionState, grant=_grant_from_the_claim_on), S1, 300),
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
        _of(SessionAttestor, _confirmed=_confirmed_until_lost, disconnected=_disconnected_is_forgiven),
        S1,
        60,
    ),
    Canary(
        "a confirmation is read without sync",
        _of(SessionAttestor, tick=_tick_without_sync),
        S1,
        320,
        _draw_without_suspicion,
    ),
    Canary("the last confirmation is believed as if all had heard it", _of(attestation, HEARD_AFTER=0.0), S1, 1000),
    Canary(
        "it seizes without reading the node after the lease",
        _of(RivalLease, expired_reason=_expired_because_another_was_gone),
        S1,
        60,
    ),
    Canary(
        "a connection that broke is taken for a process that ended", _of(ProcessMonitor, _on_end=_ended_is_gone), S1, 60
    ),
    Canary(
        "a host that is silent is taken for a process that ended",
        _of(ProcessMonitor, _on_end=_silence_is_gone),
        S1,
        200,
    ),
    Canary(
        "a host that never showed the process is believed", _of(ProcessMonitor, _on_end=_any_refusal_is_gone), S1, 60
    ),
    Canary(
        "a lease counts from the start of the list", _of(Responses, _record_listed=_record_listed_when_asked), S1, 200
    ),
    Canary("a leader works until its belief ends", _of(ElectionState, is_leader=_leader_until_the_belief_ends), S1, 30),
    Canary("a renewed lease does not begin anew", _of(RivalLease, observe=_observe_without_starting_anew), S1, 30),
    Canary(
        "a stale listing is used for the claim",
        lambda: [
            patch.object(Responses, "_job_listed", _job_listed_and_remembered),
            patch.object(Steps, "_claim", _claim_as_listed_before),
        ],
        S3,
        30,
    ),
    Canary("a released lease lowers the epoch", _of(Steps, _claim=_claim_afresh_after_a_release), S3, 60),
    Canary(
        "a node of another session is deleted",
        _of(Mirror, _next=_next_deletes_whatever_is_there),
        frozenset({"OWN"}),
        60,
    ),
    Canary("a seizure that is listed is taken for done", _of(Steps, _seize=_seize_or_hold), S1, 500),
    Canary("a claim that is listed is taken for done", _of(Election, _next_commands=_claim_or_grant), S3, 60),
    Canary("a batch that is listed is taken for published", _of(Checkpoints, _peek=_peek_and_acknowledge), S5, 500),
    Canary(
        "endpoints that are listed are taken for published",
        _of(Announcement, on_unknown=_unknown_is_forgotten),
        R2,
        500,
    ),
    Canary("ZooKeeper is written before HDFS", _of(Announcement, newly_published=_published_before_hdfs), R2, 30),
    Canary(
        "old checkpoints are dropped before the new one is there",
        _of(Checkpoints, _gives_way=_drop_before_adding),
        S4,
        30,
    ),
    Canary("a released lease is seized out of turn", _of(RivalLease, _released_reason=_released_to_anybody), HAND, 100),
    Canary("the newest checkpoint gives way", _of(Checkpoints, _gives_way=_newest_gives_way), KEPT, 30),
    Canary("the counter reads, adds and writes", _of(Checkpoints, _take=_read_add_write), S4, 30),
    Canary(
        "a lower epoch from ZooKeeper is believed", _of(LeaderView, merge_zookeeper=_believe_all_of_zookeeper), R1, 1300
    ),
    Canary(
        "a lower epoch from an agent is believed",
        _of(LeaderView, merge_snapshot=_believe_all_of_an_agent),
        R1,
        30,
        draw_agent_without_news,
    ),
    Canary(
        "a new record is not verified before it is used",
        _of(LeaderView, merge_zookeeper=_believe_without_verification),
        R2,
        60,
    ),
    Canary(
        "a lookup fails if HDFS cannot confirm a record",
        _of(LeaderView, believe_unverified=_believe_nothing_without_hdfs),
        R3,
        20,
        draw_new_reader_without_hdfs,
    ),
    Canary("a reader never audits", _of(HdfsLookup, audit_if_due=_no_audit), frozenset({"R2", "R4"}), 200),
    Canary("a snapshot never runs out", _of(executor, snapshot_of=_snapshot_for_ever), R4, 30, draw_frozen_question),
    Canary(
        "a snapshot's freshness counts from the answer",
        _of(Watch, _look=_look_of_the_answers_age),
        R4,
        60,
        draw_frozen_question,
    ),
)
