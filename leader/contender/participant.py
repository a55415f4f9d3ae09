"""Participant: a process's part in one job. It joins election, mirrors and suspicion of the leader. No I/O."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from leader.contender.mirror_runner import MirrorRunner
from leader.contender.scheduler import Priority, PriorityScheduler
from leader.election.attestation import check_attestation
from leader.election.election import Election
from leader.election.events import (
    AskProcess,
    AttestationChecked,
    CheckAttestation,
    Command,
    Confirm,
    Event,
    FilesDone,
    Grant,
    HandOverRequested,
    Log,
    Nudge,
    ProcessAsked,
    ProcessGone,
    Publish,
    Rename,
    RequestsFound,
    Revoke,
    Suspect,
    TellReleased,
    Tick,
    Unpublish,
)
from leader.election.ports import Environment, Timer
from leader.election.state import Phase
from leader.election.suspicion import Suspicion
from leader.layout.contact import ContactAddress, ReleaseNotice
from leader.layout.information import LeaderInformation, encode
from leader.layout.znodes import Node, contenders_path, leader_path
from leader.observer import Observer
from leader.timing import NEVER, PAST
from store.outcome import Outcome


class LeaderListener(Protocol):
    """Learns of leadership, in order. Its methods must not block."""

    def granted(self, job: str, grant: Grant) -> None:
        """Leadership begins."""

    def revoked(self, job: str, revoke: Revoke) -> None:
        """Leadership ended, or must end sooner than was said before."""

    def asked(self, job: str, successor: str) -> None:
        """An operator asks the leader to hand over."""

    def requested(self, job: str) -> None:
        """An operator has left a request for the leader."""

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        """The belief has changed: boot-clock seconds until which it leads, and until which no other can lead."""

    def published(self, job: str, information: LeaderInformation) -> None:
        """HDFS holds the confirmed endpoints; ZooKeeper follows."""

    def suspected(self, job: str, contender: str) -> None:
        """This standby seizes the lease because the process of its holder, ``contender``, seems to have ended."""

    def said(self, job: str, sentence: str, *, warns: bool = False) -> None:
        """A sentence for the log."""


@dataclass(frozen=True, slots=True)
class Belief:
    """The belief of a contender: it leads until then, and no other can lead until then; boot-clock seconds."""

    leads_until: float
    holds_until: float


class Participant:
    """A contender's part in one job."""

    def __init__(
        self,
        environment: Environment,
        scheduler: PriorityScheduler,
        election: Election,
        listener: LeaderListener,
        suspicion: Suspicion | None,
        observer: Observer | None = None,
        tell: Callable[[ReleaseNotice], None] | None = None,
    ) -> None:
        self.election = election
        self.leader_mirror = MirrorRunner(environment, leader_path(election.state.job), self._nudge)
        self.contender_mirror = MirrorRunner(
            environment, f"{contenders_path(election.state.job)}/{election.state.contender}"
        )
        self.endpoints: dict[str, str] | None = None  # confirmed with each grant; None if the listener confirms its own
        self._environment = environment
        self._scheduler = scheduler
        self._listener = listener
        self._observer = observer
        self._suspicion = suspicion
        self._tell = tell
        self._followed: tuple[str, ContactAddress] | None = (
            None  # session id of the rival lease, and its holder's contact
        )
        self._timer: Timer | None = None
        self._last_said = ""
        self._left = False
        self._belief = (PAST, PAST)

    @property
    def busy(self) -> bool:
        """Whether it holds the lease, or is giving it back."""
        return self.election.state.phase is not Phase.STANDBY

    def send(self, event: Event) -> None:
        """Give the election an event and execute its commands; does nothing once the job was left."""
        if self._left:
            return
        self._observe(event)
        commands = self.election.handle(event, self._environment.now())
        # The belief comes before what follows from it: a listener can rely on it as soon as it is told of a grant.
        belief = (self.election.state.leads_until(), self.election.state.holds_until())
        if belief != self._belief:
            self._belief = belief
            self._observe(Belief(*belief))
            self._listener.believed(self.election.state.job, *belief)
        for command in commands:
            self._execute(command)
        self._follow(self.election.state.rival_process)
        self._schedule()

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is connected."""
        self.leader_mirror.connected(session, timeout)
        self.contender_mirror.connected(session, timeout)

    def disconnected(self) -> None:
        """ZooKeeper is not connected."""
        self.leader_mirror.disconnected()
        self.contender_mirror.disconnected()

    def close(self) -> None:
        """Stop for good, and ignore later answers."""
        self._left = True
        self._follow(None)
        self.leader_mirror.close()
        self.contender_mirror.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _execute(self, command: Command) -> None:  # noqa: C901, PLR0912  # one branch per command
        job = self.election.state.job
        self._observe(command)
        match command:
            case Grant():
                self._listener.granted(job, command)
                if self.endpoints is not None:
                    self.send(Confirm(command.session_id, self.endpoints))
            case Revoke():
                self._listener.revoked(job, command)
            case HandOverRequested(successor):
                self._listener.asked(job, successor)
            case RequestsFound():
                self._listener.requested(job)
            case Suspect(contender):
                self._listener.suspected(job, contender)
            case Log(sentence, warns):
                if sentence != self._last_said:
                    self._listener.said(job, sentence, warns=warns)
                self._last_said = sentence
            case Publish(information):
                self.leader_mirror.want(encode(information))
                self._listener.published(job, information)
            case Unpublish():
                self.leader_mirror.want(None)
            case TellReleased(lease):
                if self._tell is not None:
                    self._tell(ReleaseNotice(job, lease))
            case CheckAttestation(token):
                self._check(token)
            case AskProcess(token, contact):
                self._ask(token, contact)
            case _:
                self._scheduler.submit(
                    self._priority(command),
                    partial(self._environment.run_files, job, command),
                    lambda outcome: self.send(FilesDone(command, outcome)),
                )

    def _observe(self, happened: Event | Command | Belief) -> None:
        if self._observer is not None:
            self._observer(self.election.state.job, happened)

    def _priority(self, command: Command) -> Priority:
        if self.busy:
            return Priority.HOLD
        return Priority.SEIZE if isinstance(command, Rename) else Priority.LOOK

    def _check(self, token: str) -> None:
        steps = check_attestation(token)

        def answered(outcome: Outcome[Node | None]) -> None:
            try:
                command = steps.send(outcome)
            except StopIteration as stop:
                self.send(AttestationChecked(token, stop.value))
            else:
                self._environment.run_node(command, answered, self._nudge)

        self._environment.run_node(next(steps), answered, self._nudge)

    def _ask(self, token: str, contact: ContactAddress) -> None:
        assert self._suspicion is not None, "only a process that listens itself asks others"
        self._suspicion.ask(contact, lambda lives: self.send(ProcessAsked(token, lives)))

    def _follow(self, rival: tuple[str, ContactAddress] | None) -> None:
        if self._suspicion is None or rival == self._followed:
            return
        if self._followed is not None:
            self._suspicion.leave(self._followed[1], self._gone)
        self._followed = rival
        if rival is not None:
            self._suspicion.follow(rival[1], self._gone)

    def _gone(self, contact: ContactAddress) -> None:
        if self._followed is not None and self._followed[1] == contact:
            self.send(ProcessGone(self._followed[0]))

    def _nudge(self) -> None:
        # A method, not a function made for each read: equal watches are one watch, so they do not pile up.
        self.send(Nudge())

    def _schedule(self) -> None:
        wake = self.election.wake_at(self._environment.now())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._environment.call_at(wake, self._wake) if wake < NEVER else None

    def _wake(self) -> None:
        self._timer = None
        self.send(Tick())
