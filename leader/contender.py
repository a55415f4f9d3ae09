"""One process that may lead jobs: joins the election, the session and the copies, and runs their commands.

No I/O here either: an :class:`Environment` executes. In production that is :mod:`leader.runtime`, in the simulator it
is virtual time and stores that misbehave, so both run the same code down to the executed command.
"""

import uuid
from collections.abc import Callable
from typing import Protocol

from leader.copy import Copy
from leader.election import Election
from leader.environment import Environment, Timer
from leader.errors import InvalidName
from leader.events import (
    Asked,
    AttestationChecked,
    Attested,
    CheckAttestation,
    Command,
    Confirm,
    Contend,
    Event,
    FilesDone,
    Grant,
    Nudge,
    Publish,
    Release,
    Revoke,
    Say,
    StepDown,
    Tick,
    Unpublish,
)
from leader.information import LeaderInformation, encode
from leader.nodes import Node, NodeCommand, contenders_path, leader_path
from leader.session import SessionKeeper, check_attestation
from leader.step import Phase
from leader.timing import Timing
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

    def said(self, job: str, sentence: str) -> None:
        """A decision, for the log."""


class Candidacy:
    """A contender's part in one job."""

    def __init__(self, environment: Environment, election: Election, leads: Leads) -> None:
        self.election = election
        self.information = Copy(environment, leader_path(election.job), self._nudge)
        self.presence = Copy(environment, f"{contenders_path(election.job)}/{election.contender}")
        self._environment = environment
        self._leads = leads
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
                self._environment.run_files(job, command, lambda outcome: self.send(FilesDone(command, outcome)))

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


class Contender:
    """One process: its ZooKeeper session, and a candidacy for each of its jobs."""

    def __init__(
        self,
        environment: Environment,
        name: str,
        timing: Timing,
        *,
        new_session_id: Callable[[], str],
        new_incarnation: Callable[[], str],
    ) -> None:
        """Join nothing yet.

        Args:
            environment: executes.
            name: the contender's name.
            timing: all durations.
            new_session_id: gives a random UUID at every call.
            new_incarnation: gives a random word of 8 hexadecimal digits.
        """
        self.name = name
        self.timing = timing
        self.candidacies: dict[str, Candidacy] = {}
        self._environment = environment
        self._new_session_id = new_session_id
        self._keeper = SessionKeeper(
            drift=timing.drift,
            reserve=timing.call_timeout + timing.stop_margin,
            new_incarnation=new_incarnation,
            about=name.encode(),
        )
        self._session: tuple[int, float] | None = None
        self._timer: Timer | None = None

    @classmethod
    def make(cls, environment: Environment, name: str, timing: Timing) -> "Contender":
        """Make one with identifiers that are truly random."""
        return cls(
            environment,
            name,
            timing,
            new_session_id=lambda: str(uuid.uuid4()),
            new_incarnation=lambda: uuid.uuid4().hex[:8],
        )

    # --- jobs

    def join(self, job: str, leads: Leads) -> Candidacy:
        """Become a standby of a job; contend with :meth:`contend`.

        Raises:
            InvalidName: that is not a job's name, or it is one that was joined already.
        """
        if job in self.candidacies:
            raise InvalidName(f"Job {job!r} is contended for by this process already: name it once.")
        candidacy = Candidacy(self._environment, Election(job, self.name, self.timing, self._new_session_id), leads)
        self.candidacies[job] = candidacy
        candidacy.send(Attested(self._keeper.attestation))
        if self._session is not None:
            candidacy.connected(*self._session)
        return candidacy

    def leave(self, job: str) -> None:
        """Forget a job; give its lease back before."""
        self.candidacies.pop(job).close()

    def contend(self, job: str) -> None:
        """Try to become the job's leader from now on."""
        self.candidacies[job].presence.want(self.name.encode())
        self.candidacies[job].send(Contend())

    def confirm(self, job: str, session_id: str, endpoints: dict[str, str]) -> None:
        """Publish endpoints under a session id; nothing happens unless it is the present one."""
        self.candidacies[job].send(Confirm(session_id, endpoints))

    def step_down(self, job: str, reason: str) -> None:
        """End the leadership, keep the lease while work is being stopped."""
        self.candidacies[job].send(StepDown(reason))

    def release(self, job: str, successor: str = "") -> None:
        """All work has stopped: give the lease back."""
        self.candidacies[job].presence.want(None)
        self.candidacies[job].send(Release(successor))

    # --- ZooKeeper

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is there, with a session of this id and this negotiated timeout in seconds."""
        self._session = (session, timeout)
        self._ask(self._keeper.connected(session, timeout, self._environment.now()))
        for candidacy in list(self.candidacies.values()):
            candidacy.connected(session, timeout)

    def disconnected(self) -> None:
        """ZooKeeper is away, or the session is over."""
        self._session = None
        self._keeper.disconnected()
        for candidacy in list(self.candidacies.values()):
            candidacy.disconnected()
        self._attest()

    def _ask(self, command: NodeCommand | None) -> None:
        self._attest()
        self._schedule()
        if command is None:
            return

        def answered(outcome: Outcome[Node | None]) -> None:
            self._ask(self._keeper.answered(command, outcome, self._environment.now()))

        self._environment.run_node(command, answered, self._doubt)

    def _doubt(self) -> None:
        self._ask(self._keeper.doubt(self._environment.now()))

    def _attest(self) -> None:
        for candidacy in list(self.candidacies.values()):
            if candidacy.election.attestation != self._keeper.attestation:
                candidacy.send(Attested(self._keeper.attestation))

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wake = self._keeper.wake_at()
        self._timer = self._environment.call_at(wake, self._wake) if wake < float("inf") else None

    def _wake(self) -> None:
        self._timer = None
        self._ask(self._keeper.tick(self._environment.now()))
