"""One process's part in one job: joins the election, the copies and the watch over the leader's process. No I/O."""

from functools import partial
from typing import Protocol

from leader.copy import Copy
from leader.election import Election
from leader.environment import Environment, Timer
from leader.events import (
    Asked,
    AttestationChecked,
    CheckAttestation,
    Command,
    Event,
    FilesDone,
    Grant,
    Nudge,
    ProcessGone,
    Publish,
    Rename,
    Revoke,
    Say,
    Suspect,
    Tick,
    Unpublish,
)
from leader.information import LeaderInformation, encode
from leader.nodes import Node, contenders_path, leader_path
from leader.session import check_attestation
from leader.step import Phase
from leader.suspicion import Suspicion
from leader.turns import Turns, Urgency
from store.outcome import Outcome


class Leads(Protocol):
    """Who is told about leadership. Called in order, and must not block."""

    def granted(self, job: str, grant: Grant) -> None:
        """Leadership begins."""

    def revoked(self, job: str, revoke: Revoke) -> None:
        """Leadership ended, or must end sooner than was said before."""

    def asked(self, job: str, successor: str) -> None:
        """An operator asks the leader to hand over."""

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        """What was believed has changed: boot-clock seconds until which it leads, and until which nobody else can."""

    def published(self, job: str, information: LeaderInformation) -> None:
        """HDFS holds what was confirmed; ZooKeeper follows."""

    def suspected(self, job: str, contender: str) -> None:
        """This standby takes the process of the leader, whose name that is, for ended, and seizes its lease."""

    def said(self, job: str, sentence: str) -> None:
        """A decision, for the log."""


class Candidacy:
    """A contender's part in one job."""

    def __init__(
        self, environment: Environment, turns: Turns, election: Election, leads: Leads, suspicion: Suspicion | None
    ) -> None:
        self.election = election
        self.information = Copy(environment, leader_path(election.job), self._nudge)
        self.presence = Copy(environment, f"{contenders_path(election.job)}/{election.contender}")
        self._environment = environment
        self._turns = turns
        self._leads = leads
        self._suspicion = suspicion
        self._found = ("", b"")
        """The token that ZooKeeper has said something about last, and the data of its node."""
        self._followed: str | None = None
        self._timer: Timer | None = None
        self._last_said = ""
        self._left = False
        self._belief = (float("-inf"), float("-inf"))

    @property
    def busy(self) -> bool:
        """Whether it holds the lease, or is about to give it back."""
        return self.election.phase is not Phase.STANDBY

    def send(self, event: Event) -> None:
        """Give the election an event, and do what it says; nothing once the job was left."""
        if self._left:
            return
        commands = self.election.handle(event, self._environment.now())
        # First the belief, then what follows from it: who is told of a grant can rely on it already.
        belief = (self.election.leads_until(), self.election.holds_until())
        if belief != self._belief:
            self._belief = belief
            self._leads.believed(self.election.job, *belief)
        for command in commands:
            self._execute(command)
        self._follow(self.election.rival)
        self._schedule()

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is there."""
        self.information.connected(session, timeout)
        self.presence.connected(session, timeout)

    def disconnected(self) -> None:
        """ZooKeeper is away."""
        self.information.disconnected()
        self.presence.disconnected()

    def close(self) -> None:
        """Wake up no more, whatever is still answered."""
        self._left = True
        self._follow(None)
        self.information.close()
        self.presence.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _execute(self, command: Command) -> None:
        job = self.election.job
        match command:
            case Grant():
                self._leads.granted(job, command)
            case Revoke():
                self._leads.revoked(job, command)
            case Asked(successor):
                self._leads.asked(job, successor)
            case Suspect(contender):
                self._leads.suspected(job, contender)
            case Say(sentence):
                if sentence != self._last_said:
                    self._leads.said(job, sentence)
                self._last_said = sentence
            case Publish(information):
                self.information.want(encode(information))
                self._leads.published(job, information)
            case Unpublish():
                self.information.want(None)
            case CheckAttestation(token):
                self._check(token)
            case _:
                self._turns.take(
                    self._urgency(command),
                    partial(self._environment.run_files, job, command),
                    lambda outcome: self.send(FilesDone(command, outcome)),
                )

    def _urgency(self, command: Command) -> Urgency:
        if self.busy:
            return Urgency.HOLD
        return Urgency.SEIZE if isinstance(command, Rename) else Urgency.LOOK

    def _check(self, token: str) -> None:
        steps = check_attestation(token)

        def answered(outcome: Outcome[Node | None]) -> None:
            try:
                command = steps.send(outcome)
            except StopIteration as stop:
                if stop.value and outcome.value is not None:
                    self._found = (token, outcome.value.data)
                self.send(AttestationChecked(token, stop.value))
            else:
                self._environment.run_node(command, answered, self._nudge)

        self._environment.run_node(next(steps), answered, self._nudge)

    def _follow(self, rival: str | None) -> None:
        """Watch the process that holds the lease, once ZooKeeper has said where that is; none of others."""
        if self._suspicion is None:
            return
        found = rival if rival == self._found[0] else None
        if found == self._followed:
            return
        if self._followed is not None:
            self._suspicion.leave(self._followed, self._gone)
        self._followed = found
        if found is not None:
            self._suspicion.follow(found, self._found[1], self._gone)

    def _gone(self, token: str) -> None:
        self.send(ProcessGone(token))

    def _nudge(self) -> None:
        # A method and not a function made for each read: equal watches are one watch, so they do not pile up.
        self.send(Nudge())

    def _schedule(self) -> None:
        wake = self.election.wake_at(self._environment.now())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._environment.call_at(wake, self._wake) if wake < float("inf") else None

    def _wake(self) -> None:
        self._timer = None
        self.send(Tick())
