"""Contender: one process that may lead jobs. It joins elections, session and mirrors, and runs their commands.

No I/O here: an :class:`Environment` executes the commands. In production that is :mod:`leader.contender.runtime`,
in the simulator it is virtual time with stores that misbehave. So both run the same code, down to the command.
"""

import uuid
from collections.abc import Callable

from leader.contender.participant import LeaderListener, Participant
from leader.contender.scheduler import PriorityScheduler, SharedEnvironment
from leader.contender.session_source import SessionSource
from leader.election.borrowed_session import Lent
from leader.election.election import Election
from leader.election.events import Adopt, Attested, Confirm, Contend, Release, ReleaseHeard, StepDown
from leader.election.ports import Environment
from leader.election.suspicion import Suspicion
from leader.errors import InvalidName
from leader.layout.contact import ContactAddress, ReleaseNotice
from leader.layout.names import LeaderDirectory
from leader.observer import Observer
from leader.timing import Timing
from store.clock import wall

MAX_FILE_CALLS = 16  # of all jobs of a process under way at once: eight threads work, and as many commands wait


class Contender:
    """One process: its ZooKeeper session, and a participant in each of its jobs."""

    def __init__(
        self,
        environment: Environment,  # executes commands and keeps the time
        name: str,  # the contender's name
        timing: Timing,
        *,
        new_session_id: Callable[[], str],  # gives a random UUID at every call
        wall_clock: Callable[[], float],  # gives the seconds since 1970
        new_incarnation: Callable[[], str],  # gives a random word of 8 hexadecimal digits
        # Where this process listens, for standbys; None if it neither listens nor suspects others.
        address: ContactAddress | None = None,
        jitter: Callable[[], float] = lambda: 0.5,  # gives a random number from 0 to 1
        observer: Observer | None = None,  # told what happens to each job, on the thread of the environment's callbacks
        # Sends a notice to every standby that is connected to `address`; must not block.
        tell: Callable[[ReleaseNotice], None] | None = None,
        borrows: bool = False,  # whether it uses the session of its host, as long as that is lent to it; see `lent`
    ) -> None:
        self.name = name
        self.timing = timing
        self.participants: dict[str, Participant] = {}
        self._environment = environment
        self._new_session_id = new_session_id
        self._wall = wall_clock
        self._source = SessionSource(
            environment, name, timing, self._attest, new_incarnation=new_incarnation, jitter=jitter, borrows=borrows
        )
        self._shared = SharedEnvironment(environment)
        self._scheduler = PriorityScheduler(MAX_FILE_CALLS)
        listens = address is not None
        self._suspicion = (
            Suspicion(environment, timing.session_timeout, jitter, self._release_heard) if listens else None
        )
        self._observer = observer
        self._tell = tell
        self._address = address
        self._session: tuple[int, float] | None = None

    @classmethod
    def make(
        cls,
        environment: Environment,
        name: str,
        timing: Timing,
        address: ContactAddress | None = None,
        observer: Observer | None = None,
        tell: Callable[[ReleaseNotice], None] | None = None,
        *,
        borrows: bool = False,
    ) -> "Contender":
        """Make one with identifiers that are truly random."""
        return cls(
            environment,
            name,
            timing,
            new_session_id=lambda: str(uuid.uuid4()),
            wall_clock=wall,
            new_incarnation=lambda: uuid.uuid4().hex[:8],
            address=address,
            jitter=lambda: uuid.uuid4().int / 2**128,
            observer=observer,
            tell=tell,
            borrows=borrows,
        )

    # --- jobs

    def join(self, job: str, listener: LeaderListener) -> Participant:
        """Become a standby of a job; contend with :meth:`contend`. InvalidName if it was joined already."""
        if job in self.participants:
            raise InvalidName(f"This process already contends for job {job!r}: name the job once.")
        election = Election(job, self.name, self.timing, self._new_session_id, self._wall, self._address)
        participant = Participant(
            self._shared, self._scheduler, election, listener, self._suspicion, self._observer, self._tell
        )
        self.participants[job] = participant
        participant.send(Attested(self._source.attestation))
        if self._session is not None:
            participant.connected(*self._session)
        return participant

    def leave(self, job: str) -> None:
        """Forget a job; its lease must have been given back before."""
        self.participants.pop(job).close()

    def contend(self, job: str, endpoints: dict[str, str] | None = None) -> None:
        """Try to become the job's leader from now on; without ``endpoints``, :meth:`confirm` follows the grant."""
        self._prepare(job, endpoints).send(Contend())

    def adopt(self, job: str, leader: LeaderDirectory, endpoints: dict[str, str] | None = None) -> None:
        """Take up a leadership whose process has died on this host; the caller knows that it is dead."""
        self._prepare(job, endpoints).send(Adopt(leader))

    def _prepare(self, job: str, endpoints: dict[str, str] | None) -> Participant:
        participant = self.participants[job]
        participant.endpoints = endpoints
        participant.contender_mirror.want(self.name.encode())
        return participant

    def confirm(self, job: str, session_id: str, endpoints: dict[str, str]) -> None:
        """Publish endpoints under a session id; nothing happens unless it is the present one."""
        self.participants[job].send(Confirm(session_id, endpoints))

    def step_down(self, job: str, reason: str) -> None:
        """End the leadership, but keep the lease while the work is being stopped."""
        self.participants[job].send(StepDown(reason))

    def release(self, job: str, successor: str = "") -> None:
        """All work has stopped: give the lease back."""
        self.participants[job].contender_mirror.want(None)
        self.participants[job].send(Release(successor))

    # --- ZooKeeper

    def connected(self, session: int, timeout: float) -> None:
        """ZooKeeper is connected, with a session of this id and this negotiated timeout in seconds."""
        self._session = (session, timeout)
        self._source.connected(session, timeout)
        for participant in list(self.participants.values()):
            participant.connected(session, timeout)

    def disconnected(self) -> None:
        """ZooKeeper is not connected, or the session is over."""
        self._session = None
        self._source.disconnected()
        for participant in list(self.participants.values()):
            participant.disconnected()

    def lent(self, lent: Lent | None) -> None:
        """The holder of the host's session lends this; None if it lends nothing, or cannot be reached."""
        self._source.lent(lent)

    @property
    def attested_by(self) -> str:
        """Whose session attests this process's leases now: ``own``, ``host``, or empty if none does."""
        return self._source.attested_by

    def _release_heard(self, notice: ReleaseNotice) -> None:
        if (participant := self.participants.get(notice.job)) is not None:
            participant.send(ReleaseHeard(notice.lease))

    def _attest(self) -> None:
        attestation = self._source.attestation
        for participant in list(self.participants.values()):
            if participant.election.state.attestation != attestation:
                participant.send(Attested(attestation))
