"""Mutants of the protocol: each breaks one rule, and the simulator must catch it, or it proves nothing.

The plans are the same that test the protocol itself. ``within`` is about three times the number of seeds that were
needed when it was measured, so that a change of the plans does not fail a test by chance.

Two rules have no canary, because others defend them too, as was tried. A standby asks for the leader's node with a
``sync``: its own confirmations bring its server up to date as well. A wiped ZooKeeper is not taken for dead sessions: a
new session has to settle first, and by then the leader has switched its lease or its belief is over. A third one needs
more luck than a thousand seeds have: that a confirmation is two syncs. Its plan is among the regressions.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Self
from unittest.mock import patch

import msgspec

from ha.agent.agent import snapshot_of
from leader import session
from leader.answers import Look
from leader.checkpoint import CheckpointEntry
from leader.checkpoint_list import CheckpointList
from leader.checkpoints import Checkpoints
from leader.confirmation import Change, Confirmation
from leader.election import Election
from leader.environment import Sign
from leader.events import Grant, Rename
from leader.information import LeaderInformation
from leader.lease import Holding, Lease
from leader.names import LeaderDirectory
from leader.nodes import DeleteNode, Node, NodeCommand, ReadNode, Sync
from leader.observation import Observation
from leader.publication import Publication
from leader.retrieval import Knowledge, Source
from leader.session import SessionKeeper
from leader.snapshot import Snapshot
from leader.step import Phase, Step
from leader.suspicion import Watch
from store.outcome import Outcome
from tests.simulation import executor

Patch = AbstractContextManager[object]


@dataclass(frozen=True)
class Canary:
    """A rule that is broken.

    Attributes:
        name: what the mutant does wrong.
        patches: make it do so, while they are entered.
        breaks: guarantees, of which a run must break one.
        within: seeds, from 0, in which it must be seen.
    """

    name: str
    patches: Callable[[], list[Patch]]
    breaks: frozenset[str]
    within: int

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


_failed = Election._failed


def _failed_unknown_is_refused(self: Election, step: Step, outcome: Outcome[list[str] | None], now: float) -> None:
    if step.lease is not None and outcome.unknown and step.lease != self._holding.current:
        self._holding._promises.pop(step.lease, None)
    _failed(self, step, outcome, now)


_answered = Election._answered


def _answered_unknown_is_done(self: Election, outcome: Outcome[list[str] | None], now: float) -> None:
    step = self._under_way
    if step is not None and outcome.unknown and (step.lease is not None or step.directory is not None):
        outcome = Outcome(None, None, outcome.started, outcome.ended)
    _answered(self, outcome, now)


def _grant_from_the_claim_on(self: Election, now: float) -> None:
    del now
    if self.directory is None:
        return
    self._holding._promises = dict.fromkeys(self._holding._promises, self._sent_at)
    self.phase = Phase.LEADING
    self._look_due = float("inf")
    self._confirmation.begin(self.directory, self._reason, self.contender)
    self._commands.append(Grant(self.directory.epoch, self.session_id, self._reason))


def _deadline_without_drift(_: Holding, lease: Lease, start: float) -> float:
    return start + lease.ttl


def _expiry_without_drift(self: Observation) -> float:
    return float("inf") if self.lease is None else self._since + self.lease.ttl


# --- the session


_confirmed = SessionKeeper._confirmed


def _confirmed_until_lost(self: SessionKeeper, node: Node | None, now: float) -> None:
    _confirmed(self, node, now)
    if self.attestation.usable:
        self.attestation = msgspec.structs.replace(self.attestation, until=float("inf"))


def _disconnected_is_forgiven(self: SessionKeeper) -> None:
    self._next_due = float("inf")


_tick = SessionKeeper.tick


def _tick_without_sync(self: SessionKeeper, now: float) -> NodeCommand | None:
    command = _tick(self, now)
    if not isinstance(command, Sync):
        return command
    self._under_way = None
    return self._ask(ReadNode(self._path(), watch=True))


# --- the standby's observation


_seizable = Observation.seizable


def _seizable_because_another_was_gone(self: Observation, now: float) -> str | None:
    if self.lease is not None and self.lease.attestation and self._gone is not None:
        return "session-gone"
    return _seizable(self, now)


def _see_without_starting_anew(self: Observation, lease: Lease, at: float) -> None:
    if self.lease is None or lease.owner != self.lease.owner:
        self._since = at
    self.lease = lease


# --- fast suspicion


_ended = Watch._ended


def _ended_is_gone(self: Watch, sign: Sign, now: float) -> None:
    if self._met and sign is Sign.BROKEN:
        self._gone()
    _ended(self, sign, now)


def _silence_is_gone(self: Watch, sign: Sign, now: float) -> None:
    if self._broke_at is not None and sign is Sign.NOTHING:
        self._gone()
    _ended(self, sign, now)


def _any_refusal_is_gone(self: Watch, sign: Sign, now: float) -> None:
    if sign is Sign.REFUSED:
        self._gone()
    _ended(self, sign, now)


# --- the claim


_job_listed = Election._job_listed


def _job_listed_and_remembered(self: Election, outcome: Outcome[list[str] | None], now: float) -> None:
    _job_listed(self, outcome, now)
    if self.directory is not None and not hasattr(self, "_listed"):
        self._listed = self.directory.epoch  # type: ignore[attr-defined]


def _claim_as_listed_before(self: Election, now: float) -> Step | None:
    del now
    if self.directory is None:
        return None
    mine = LeaderDirectory(getattr(self, "_listed", self.directory.epoch) + 1, self.session_id)
    return Step(Rename(self.directory.name, mine.name), directory=mine)


def _claim_afresh_after_a_release(self: Election, now: float) -> Step | None:
    del now
    if self.directory is None:
        return None
    epoch = 1 if self._reason == "released" else self.directory.epoch + 1
    mine = LeaderDirectory(epoch, self.session_id)
    return Step(Rename(self.directory.name, mine.name), directory=mine) if mine != self.directory else None


# --- what is only listed


_seize = Election._seize


def _seize_or_hold(self: Election, now: float) -> Step | None:
    if (lease := self._observation.lease) is not None and lease in self._holding:
        self._hold(lease, now)
        return self._act(now)
    return _seize(self, now)


_claim = Election._claim


def _claim_or_grant(self: Election, now: float) -> Step | None:
    if self.directory is not None and self.directory.session_id == self.session_id:
        self._grant(now)
        return None
    return _claim(self, now)


_peek = Checkpoints._peek


def _peek_and_acknowledge(self: Checkpoints) -> object:
    found = _peek(self)
    self._acknowledged.update({query: entries[-1] for query, entries in found.entries.items()})
    return found


def _doubted_is_forgotten(self: Confirmation, change: Change) -> None:
    del self, change


# --- copies and checkpoints


_next = Publication._next


def _next_deletes_whatever_is_there(self: Publication, now: float) -> NodeCommand | None:
    if self._wanted is None and self._sent is not None and self._read and self._node is not None:
        return DeleteNode(self.path, self._node.version)
    return _next(self, now)


def _announce_before_hdfs(self: Confirmation) -> LeaderInformation | None:
    information = self.information
    if information is None or information.version == self._announced:
        return None
    self._announced = information.version
    return information


def _drop_before_adding(self: Checkpoints, found: CheckpointList, entry: CheckpointEntry) -> None:
    for each in found.entries.get(entry.checkpoint.query, ()):
        self._folder.delete(each.name)


def _read_add_write(self: Checkpoints) -> int:
    number = self._folder.read().next_id
    self._folder.make(f"next={number + 1}").result()
    self._folder.delete(f"next={number}")
    return number


# --- readers


def _believe_all_of_zookeeper(self: Knowledge, information: LeaderInformation, at: float) -> bool:
    self._know(information, (information.epoch, information.session_id), Source.ZOOKEEPER, at, verified=False)
    return True


def _believe_all_of_an_agent(self: Knowledge, snapshot: Snapshot) -> bool:
    if snapshot.information is not None:
        version = (snapshot.epoch, snapshot.session_id)
        self._know(snapshot.information, version, Source.SNAPSHOT, snapshot.at, verified=snapshot.verified)
    return True


def _snapshot_for_ever(job: str, look: Look, fresh: float) -> Snapshot:
    return msgspec.structs.replace(snapshot_of(job, look, fresh), good_until=float("inf"))


def _of(owner: object, **replaced: object) -> Callable[[], list[Patch]]:
    return lambda: [patch.object(owner, name, value) for name, value in replaced.items()]


S1, S3, S4, S5 = frozenset({"S1"}), frozenset({"S3"}), frozenset({"S4"}), frozenset({"S5"})
R1, R2, R4 = frozenset({"R1"}), frozenset({"R2"}), frozenset({"R4"})

CANARIES = (
    Canary("belief is not capped when a renewal is sent", _of(Holding, until=_until_of_the_current_entry), S1, 300),
    Canary("an unknown outcome is taken for refused", _of(Election, _failed=_failed_unknown_is_refused), S1, 500),
    Canary("an unknown outcome is taken for done", _of(Election, _answered=_answered_unknown_is_done), S1, 60),
    Canary("a claim is not checked against the own lease", _of(Election, _grant=_grant_from_the_claim_on), S1, 300),
    Canary(
        "clocks are taken to be exact",
        lambda: [
            patch.object(Holding, "_deadline", _deadline_without_drift),
            patch.object(Observation, "expiry", _expiry_without_drift),
        ],
        S1,
        60,
    ),
    Canary(
        "LOST is awaited instead of the own session clock",
        _of(SessionKeeper, _confirmed=_confirmed_until_lost, disconnected=_disconnected_is_forgiven),
        S1,
        60,
    ),
    Canary("a confirmation is read without sync", _of(SessionKeeper, tick=_tick_without_sync), S1, 300),
    Canary("the last confirmation is believed as if all had heard it", _of(session, HEARD_AFTER=0.0), S1, 1000),
    Canary(
        "it seizes without reading the node after the lease",
        _of(Observation, seizable=_seizable_because_another_was_gone),
        S1,
        60,
    ),
    Canary("a connection that broke is taken for a process that ended", _of(Watch, _ended=_ended_is_gone), S1, 60),
    Canary("a host that is silent is taken for a process that ended", _of(Watch, _ended=_silence_is_gone), S1, 200),
    Canary("a host that never showed the process is believed", _of(Watch, _ended=_any_refusal_is_gone), S1, 60),
    Canary("a renewed lease does not begin anew", _of(Observation, see=_see_without_starting_anew), S1, 30),
    Canary(
        "a stale listing is used for the claim",
        _of(Election, _job_listed=_job_listed_and_remembered, _claim=_claim_as_listed_before),
        S3,
        30,
    ),
    Canary("a released lease lowers the epoch", _of(Election, _claim=_claim_afresh_after_a_release), S3, 60),
    Canary(
        "a node of another session is deleted",
        _of(Publication, _next=_next_deletes_whatever_is_there),
        frozenset({"OWN"}),
        60,
    ),
    Canary("a seizure that is listed is taken for done", _of(Election, _seize=_seize_or_hold), S1, 500),
    Canary("a claim that is listed is taken for done", _of(Election, _claim=_claim_or_grant), S3, 60),
    Canary("a batch that is listed is taken for published", _of(Checkpoints, _peek=_peek_and_acknowledge), S5, 60),
    Canary(
        "endpoints that are listed are taken for published", _of(Confirmation, doubted=_doubted_is_forgotten), R2, 100
    ),
    Canary("ZooKeeper is written before HDFS", _of(Confirmation, announce=_announce_before_hdfs), R2, 30),
    Canary(
        "old checkpoints are dropped before the new one is there",
        _of(Checkpoints, _gives_way=_drop_before_adding),
        S4,
        30,
    ),
    Canary("the counter reads, adds and writes", _of(Checkpoints, _take=_read_add_write), S4, 30),
    Canary(
        "a lower epoch from ZooKeeper is believed", _of(Knowledge, hear_zookeeper=_believe_all_of_zookeeper), R1, 1300
    ),
    Canary("a lower epoch from an agent is believed", _of(Knowledge, hear_snapshot=_believe_all_of_an_agent), R1, 2200),
    Canary("a snapshot never runs out", _of(executor, snapshot_of=_snapshot_for_ever), R4, 800),
)
