"""Election state: what one contender holds and believes of one job, its transitions and its invariants. No I/O.

:mod:`leader.election.steps` decides what to do next, :mod:`leader.election.responses` reads answers. A transition
changes the state and returns the commands that follow from it.
"""

from dataclasses import dataclass
from enum import Enum

from leader.election.announcement import Announcement, Change
from leader.election.events import (
    Command,
    FilesCommand,
    Grant,
    HandOverRequested,
    RequestsFound,
    Revoke,
    TellReleased,
    Unpublish,
)
from leader.election.holding import Holding
from leader.election.rival import RivalLease
from leader.election.schedule import PollSchedule
from leader.layout import names
from leader.layout.contact import ContactAddress
from leader.layout.information import LeaderInformation
from leader.layout.lease import LOOK, PAUSED, Attestation, Lease, Mode, check_contender
from leader.layout.names import ADOPTED, LeaderDirectory
from leader.layout.pause import Pause
from leader.timing import PAST, Timing


class Phase(Enum):
    """How far a contender has come."""

    STANDBY = "standby"  # holds nothing; looks for a chance if it contends
    CLAIMING = "claiming"  # holds the lease, not yet the leader directory
    LEADING = "leading"  # leads
    STEPPING_DOWN = "stepping down"  # no longer leads, but keeps the lease while its work is being stopped
    RELEASING = "releasing"  # gives the lease back


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """The request under way: a command for the file system and what exists once it is done."""

    # At most one of lease, directory and change is set; none for a look and for the creation of the job.

    command: FilesCommand
    lease: Lease | None = None
    directory: LeaderDirectory | None = None
    change: Change | None = None


class ElectionState:
    """One contender's part in the election of one job's leader; :meth:`validate` states what always holds."""

    def __init__(
        self, job: str, contender: str, timing: Timing, session_id: str, contact: ContactAddress | None = None
    ) -> None:
        """Start as a standby that does not contend; ``contact`` as for :class:`Election`."""
        self.job = names.check_job(job)
        self.contender = check_contender(contender)
        self.timing = timing
        self.phase = Phase.STANDBY
        self.contending = False
        self.session_id = session_id  # the id of this contender's last try to lead, or of its leadership
        self.adopting: LeaderDirectory | None = None  # a dead process's, to be taken up; see `adoption`
        self.directory: LeaderDirectory | None = None  # the job's leader directory as last seen; None if there is none
        self.doubted: LeaderDirectory | None = None  # of a higher epoch than this leader's own, to be looked at
        self.attestation = Attestation()  # ZooKeeper's word on this process's own session
        self.rival = RivalLease(contender, timing, contact)
        self.holding = Holding(drift=timing.drift)
        self.contact = contact
        self.announcement = Announcement(contact)
        self.schedule = PollSchedule(timing)
        self.pending: PendingOperation | None = None
        self.seize_reason = ""  # why the lease could be seized, as one word for the history
        self.successor = ""  # the contender for whom the lease is given back; empty for anybody
        self.job_missing = False  # whether the job's directory is to be created
        self.paused: Pause | None = None  # for people: the pause of the job, as far as this contender has seen
        self.barred_until = PAST  # boot-clock seconds; an operator keeps it from taking over, as far as seen
        self.stop_demanded = False  # whether the work that is being stopped has a deadline

    # --- what others may ask

    @property
    def information(self) -> LeaderInformation | None:
        """The information that this leader has confirmed, published or not yet; None if there is none."""
        return self.announcement.information if self.phase is Phase.LEADING else None

    @property
    def lease(self) -> Lease | None:
        """The lease as last seen, own or not."""
        return self.rival.lease

    @property
    def competes(self) -> bool:
        """Whether it is a standby that would seize the lease."""
        return self.phase is Phase.STANDBY and self.contending and self.adopting is None

    @property
    def rival_owner(self) -> str | None:
        """Session id of the lease which this standby contends for and another holds; None if there is none."""
        return self.rival.owner if self.competes else None

    @property
    def rival_process(self) -> tuple[str, ContactAddress] | None:
        """The same, and where the process of its holder listens; None if that is unknown."""
        owner, contact = self.rival_owner, self.rival.contact
        return (owner, contact) if owner is not None and contact is not None else None

    @property
    def claim_is_listed(self) -> bool:
        """Whether the leader directory, as last seen, is this contender's own."""
        return self.directory is not None and self.directory.session_id == self.session_id

    def holds_until(self) -> float:
        """Boot-clock seconds until which no other can lead; minus infinity if another can."""
        return self.holding.until()

    def leads_until(self) -> float:
        """Boot-clock seconds until which this contender leads; minus infinity if it does not."""
        if self.phase is not Phase.LEADING:
            return PAST
        return self.holding.until() - self.timing.stop_margin

    def is_leader(self, now: float) -> bool:
        """Whether this contender leads at that time, from its own belief alone."""
        return now < self.leads_until()

    def attested(self, now: float) -> bool:
        """Whether a lease may rely on ZooKeeper from now on."""
        # A process that was paused may not know yet that ZooKeeper's promise is nearly over.
        known, reserve = self.attestation, self.timing.call_timeout + self.timing.stop_margin
        return known.usable and now < known.until - reserve

    def validate(self) -> None:
        """Assert what holds after every event; tests call this after each of them."""
        held, information = self.holding.current, self.information
        assert (self.phase is Phase.STANDBY) == (held is None), "a standby holds nothing, all others hold the lease"
        assert held is None or held.owner == self.session_id, "the lease held is our own session's"
        assert held is None or held in self.holding, "the lease held is one that the belief counts"
        if self.phase in (Phase.LEADING, Phase.STEPPING_DOWN):
            assert self.directory is not None, "a leader has a directory"
            assert self.directory.session_id == self.session_id, "a leader's directory bears its session id"
        assert self.phase is not Phase.LEADING or self.contending, "a leader that ceases to contend steps down"
        assert self.adopting is None or self.phase is Phase.STANDBY, "what is led is not taken up any more"
        assert not self.job_missing or self.phase is Phase.STANDBY, "a lease is held only in a job that exists"
        assert information is None or information.session_id == self.session_id, "a leader confirms its own endpoints"
        operation = self.pending
        if operation is not None:
            results = [each for each in (operation.lease, operation.directory, operation.change) if each is not None]
            assert len(results) <= 1, "an operation changes one thing"

    # --- transitions: towards leadership

    def hold(self, lease: Lease, now: float) -> list[Command]:
        """The file system has acknowledged this lease of ours: it is in the store to stay."""
        self.holding.confirm(lease)
        if lease.mode is Mode.RELEASED:
            return self.released(now)
        if self.phase is Phase.STANDBY:
            self.phase = Phase.CLAIMING
            self.schedule.claim_begins()
            if self.adopting is not None:
                return self.grant(now)
            return [] if self.contending else self.release("")
        if self.phase is Phase.CLAIMING and self.claim_is_listed:
            return self.grant(now)
        return []

    def grant(self, now: float) -> list[Command]:
        """The claim was acknowledged: this contender leads, unless the lease is over by its own clock."""
        if now >= self.holding.until() or self.directory is None:
            return []  # Election._expire ends it
        self.phase = Phase.LEADING
        self.schedule.leadership_begins(now)
        asked = self._asked() if self.adopting is not None else []
        self.adopting = None
        self.announcement.begin(self.directory, self.seize_reason, self.contender)
        return [Grant(self.directory.epoch, self.session_id, self.seize_reason), *asked]

    def _asked(self) -> list[Command]:
        """Return the commands for what an operator has asked the dead process, which may not have seen it."""
        successor = self.holding.present.successor if self.holding.present is not None else ""
        if not successor:
            return []
        return [RequestsFound()] if successor in (LOOK, PAUSED) else [HandOverRequested(successor)]

    def adopt(self, leader: LeaderDirectory, now: float) -> None:
        """Take up this leadership, whose process has died, instead of contending for a new one."""
        assert self.phase is Phase.STANDBY, "who holds a lease takes up no other"
        self.adopting, self.session_id, self.seize_reason = leader, leader.session_id, ADOPTED
        self.contending = True
        self.schedule.look_by(now)

    # --- transitions: how it ends

    def give_up_adoption(self, reason: str, now: float) -> list[Command]:
        """The leadership cannot be taken up: its command must have stopped by now. It does not contend."""
        leader, self.adopting = self.adopting, None
        if leader is None:
            return []
        self.contending = False
        self.holding.clear()
        return [Revoke(leader.session_id, reason, now)]

    def release(self, successor: str) -> list[Command]:
        """Give the lease back as soon as that is possible, and do not contend."""
        self.contending = False
        if self.adopting is not None:  # its command has ended, so its lease may be seized like any own one
            self.adopting = None
            self.holding.clear()
            self.rival.abandon(self.session_id)
        if self.phase in (Phase.STANDBY, Phase.RELEASING):
            return []
        commands = self.revoke("It gives the leadership back.", None) if self.phase is Phase.LEADING else []
        self.successor = successor
        self.start_release()
        return commands

    def start_release(self) -> None:
        """Give the lease back from now on, for as long as it lasts."""
        self.schedule.give_up_at = self.holding.until()
        self.phase = Phase.RELEASING

    def revoke(self, reason: str, until: float | None) -> list[Command]:
        """The leadership ends; ``until`` is when all work must have stopped, None while the lease is being kept."""
        self.phase = Phase.STEPPING_DOWN
        self.contending = False
        self.stop_demanded = until is not None
        return [Revoke(self.session_id, reason, until)]

    def demand_stop(self, reason: str, until: float) -> list[Command]:
        """All work must stop by then, even if it was allowed to take its time before."""
        leads = self.phase is Phase.LEADING
        unhurried = self.phase is Phase.STEPPING_DOWN and not self.stop_demanded
        return self.revoke(reason, until) if leads or unhurried else []

    def lose_to_another(self, reason: str, now: float) -> list[Command]:
        """Somebody else has the lease or the leader directory: all work must have stopped by now."""
        return [*self.demand_stop(reason, now), *self.lose(now)]

    def released(self, now: float) -> list[Command]:
        """The lease was given back."""
        self.schedule.hold_off(now, zookeeper_tells=self.attestation.usable)
        lease = self.holding.present
        return [*([TellReleased(lease)] if lease is not None else []), *self.lose(now)]

    def lose(self, now: float) -> list[Command]:
        """Drop lease and leadership, whatever the phase."""
        adoption_ends = self.give_up_adoption("Its lease ran out before it was taken up.", now)
        published = self.phase in (Phase.STEPPING_DOWN, Phase.RELEASING)
        self.phase = Phase.STANDBY
        self.holding.clear()
        self.rival.abandon(self.session_id)
        self.schedule.start_over(now)
        return [*adoption_ends, *([Unpublish()] if published else [])]
