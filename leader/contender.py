"""One process that may lead jobs: joins the election, the session and the copies, and runs their commands.

No I/O here either: an :class:`Environment` executes. In production that is :mod:`leader.runtime`, in the simulator it
is virtual time and stores that misbehave, so both run the same code down to the executed command.
"""

import uuid
from collections.abc import Callable

from leader import whereabouts
from leader.candidacy import Candidacy, Leads
from leader.election import Election
from leader.environment import Environment, Timer
from leader.errors import InvalidName
from leader.events import Attested, Confirm, Contend, Release, StepDown
from leader.nodes import Node, NodeCommand
from leader.session import SessionKeeper
from leader.shared import Shared
from leader.suspicion import Suspicion
from leader.timing import Timing
from leader.turns import Turns
from leader.whereabouts import Whereabouts
from store.outcome import Outcome

AT_ONCE = 16
"""Commands for the file system that all candidacies of a process have under way at most: there are eight threads for
them, and as many wait, so that no thread has to wait for the next one."""


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
        where: Whereabouts | None = None,
        jitter: Callable[[], float] = lambda: 0.5,
    ) -> None:
        """Join nothing yet.

        Args:
            environment: executes.
            name: the contender's name.
            timing: all durations.
            new_session_id: gives a random UUID at every call.
            new_incarnation: gives a random word of 8 hexadecimal digits.
            where: where this process listens, for standbys; None for one that neither listens nor suspects.
            jitter: gives a random number from 0 to 1.
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
            about=whereabouts.encode(name, where),
        )
        self._shared = Shared(environment)
        self._turns = Turns(AT_ONCE)
        self._suspicion = Suspicion(environment, timing.session_timeout, jitter) if where is not None else None
        self._session: tuple[int, float] | None = None
        self._timer: Timer | None = None

    @classmethod
    def make(cls, environment: Environment, name: str, timing: Timing, where: Whereabouts | None = None) -> "Contender":
        """Make one with identifiers that are truly random."""
        return cls(
            environment,
            name,
            timing,
            new_session_id=lambda: str(uuid.uuid4()),
            new_incarnation=lambda: uuid.uuid4().hex[:8],
            where=where,
            jitter=lambda: uuid.uuid4().int / 2**128,
        )

    # --- jobs

    def join(self, job: str, leads: Leads) -> Candidacy:
        """Become a standby of a job; contend with :meth:`contend`.

        Raises:
            InvalidName: that is not a job's name, or it is one that was joined already.
        """
        if job in self.candidacies:
            raise InvalidName(f"Job {job!r} is contended for by this process already: name it once.")
        election = Election(job, self.name, self.timing, self._new_session_id)
        candidacy = Candidacy(self._shared, self._turns, election, leads, self._suspicion)
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
