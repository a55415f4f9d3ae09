"""Where one contender of one job stands: what it holds and believes, and how that ends. No I/O.

Nothing here decides what to do next (:mod:`leader.election`) or reads an answer (:mod:`leader.following`).
"""

from collections.abc import Callable

from leader import names
from leader.complaints import Complaints
from leader.confirmation import Confirmation
from leader.events import Command, Revoke, Unpublish
from leader.information import LeaderInformation
from leader.lease import Attestation, Holding, Lease, Mode, check_contender
from leader.names import LeaderDirectory
from leader.observation import NEVER, Observation
from leader.step import Phase, Step
from leader.timing import Timing

AT_ONCE = float("-inf")


class Standing:
    """The state of one contender's part in the election of one job's leader."""

    def __init__(self, job: str, contender: str, timing: Timing, new_session_id: Callable[[], str]) -> None:
        """Start as a standby that does not contend.

        Args:
            job: the job's name.
            contender: this contender's name, for people and for switch-overs.
            timing: all durations.
            new_session_id: gives a random UUID at every call.

        Raises:
            InvalidName: one of the names cannot be one.
        """
        self.job = names.check_job(job)
        self.contender = check_contender(contender)
        self.timing = timing
        self.phase = Phase.STANDBY
        self.contending = False
        self.session_id = new_session_id()
        self.directory: LeaderDirectory | None = None
        self.attestation = Attestation()
        self._new_session_id = new_session_id
        self._observation = Observation(contender, timing)
        self._holding = Holding(drift=timing.drift)
        self._confirmation = Confirmation()
        self._reason = ""
        self._successor = ""
        self._under_way: Step | None = None
        self._sent_at = AT_ONCE
        self._looked_at = AT_ONCE
        self._look_due = NEVER
        self._look_from_top = True
        self._look_again = False
        self._missing = False
        self._retry_at = AT_ONCE
        self._held_off_until = AT_ONCE
        self._give_up_at = AT_ONCE
        self._history_due = AT_ONCE
        self._warned = False
        self._complaints = Complaints()
        self._commands: list[Command] = []

    # --- what others may ask

    @property
    def information(self) -> LeaderInformation | None:
        """What this leader has confirmed, published or not yet; None if it does not lead or has not confirmed."""
        return self._confirmation.information if self.phase is Phase.LEADING else None

    @property
    def lease(self) -> Lease | None:
        """The lease as last seen, whoever holds it."""
        return self._observation.lease

    @property
    def rival(self) -> str | None:
        """Attestation of the process that holds the lease which this standby contends for; None if there is none."""
        lease = self._observation.lease
        if self.phase is not Phase.STANDBY or not self.contending or lease is None or lease.mode is not Mode.ZOOKEEPER:
            return None
        return lease.attestation if lease.attestation != self.attestation.token else None

    def holds_until(self) -> float:
        """Boot-clock seconds until which nobody else can lead; minus infinity if somebody can."""
        return self._holding.until()

    def leads_until(self) -> float:
        """Boot-clock seconds until which this contender leads; minus infinity if it does not."""
        if self.phase is not Phase.LEADING:
            return AT_ONCE
        return self._holding.until() - self.timing.stop_margin

    def is_leader(self, now: float) -> bool:
        """Whether this contender leads at that time. Nobody else is asked."""
        return now < self.leads_until()

    def validate(self) -> None:
        """Assert what must hold after every step; for tests."""
        held = self._holding.current
        assert (self.phase is Phase.STANDBY) == (held is None), "a standby holds nothing, all others hold the lease"
        assert held is None or held.owner == self.session_id, "the lease held is our own session's"
        if self.phase in (Phase.LEADING, Phase.STEPPING_DOWN):
            assert self.directory is not None, "a leader has a directory"
            assert self.directory.session_id == self.session_id, "a leader's directory bears its session id"

    # --- how it ends

    def _release(self, successor: str) -> None:
        self.contending = False
        if self.phase in (Phase.STANDBY, Phase.RELEASING):
            return
        if self.phase is Phase.LEADING:
            self._revoke("It gives the leadership back.", until=None)
        self._successor = successor
        self._give_up_at = self._holding.until()
        self.phase = Phase.RELEASING

    def _revoke(self, reason: str, until: float | None) -> None:
        self.phase = Phase.STEPPING_DOWN
        self.contending = False
        self._warned = until is not None
        self._commands.append(Revoke(self.session_id, reason, until))

    def _warn(self, reason: str, until: float) -> None:
        """Work must have stopped by then, also if it was told before that it could take its time."""
        if self.phase is Phase.LEADING or (self.phase is Phase.STEPPING_DOWN and not self._warned):
            self._revoke(reason, until)

    def _overtaken(self, reason: str, now: float) -> None:
        self._warn(reason, now)
        self._lose(now)

    def _lose(self, now: float) -> None:
        """Hold nothing any more, from whatever phase."""
        if self.phase in (Phase.STEPPING_DOWN, Phase.RELEASING):
            self._commands.append(Unpublish())
        self.phase = Phase.STANDBY
        self._holding.clear()
        self._observation.disown(self.session_id)
        self._look_from_top = True
        self._look_due = now
