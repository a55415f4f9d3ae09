"""Rival lease: what a standby knows of somebody else's lease, and when it may seize it. No I/O."""

from collections import deque

from leader.election.holder_check import HolderCheck
from leader.layout.contact import ContactAddress
from leader.layout.lease import ANYBODY, Attestation, Lease, Mode
from leader.timing import NEVER, PAST, RENEWALS_PER_TTL, Timing

REMEMBERED_SESSIONS = 16  # own past session ids. This contender does not hold a lease under one of them, so none does
EARLY_DRIFTS = 3  # how many drifts before a renewal is due it is looked for: two clocks differ by two drifts
MAX_VAIN_LOOKS = 3  # when a renewal is due: the first look is always in vain, and sometimes the next
EXACT_POLLS = 1.5  # two looks that are at most so many polls apart tell when a renewal was. Answers take some time, too


class PollInterval:
    """How long to wait between two looks at a lease that HDFS alone carries.

    The wait for the lease's end begins when a renewal is seen, so seeing it early counts. A standby that looks every
    ``poll`` seconds sees it at most that late. From then on it looks just before the next renewal, in vain, and at
    short intervals until the renewal is there: more exact, with half as many looks. If those stay in vain, the rhythm
    has changed.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._looked_at = PAST
        self._renewal_known = False
        self._vain_looks = 0

    def looked(self, at: float, *, renewed: bool) -> None:
        """The lease was read at that time; ``renewed`` says that it had changed since it was read before."""
        apart = at - self._looked_at
        self._looked_at = at
        if renewed:
            self._renewal_known = apart <= EXACT_POLLS * self._timing.poll
            self._vain_looks = 0
        else:
            self._vain_looks += 1
            self._renewal_known = self._renewal_known and self._vain_looks <= MAX_VAIN_LOOKS

    def seconds(self) -> float:
        """Seconds until the next look."""
        if not self._renewal_known:
            return self._timing.poll
        if self._vain_looks:
            return self._timing.retry
        return self._timing.renewal * (1 - EARLY_DRIFTS * self._timing.drift) - self._timing.retry


class RivalLease:
    """The lease as it was last read, since when it reads like that, and what ZooKeeper says of its attestation."""

    def __init__(self, contender: str, timing: Timing, own_contact: ContactAddress | None = None) -> None:
        """Start without a lease; ``own_contact`` is where this process listens, None if it suspects no holder."""
        self._contender = contender
        self._timing = timing
        self._own_contact = own_contact
        self._hearing = HolderCheck(timing)
        self._since = NEVER
        self._hdfs_interval = PollInterval(timing)
        self._own_sessions: deque[str] = deque(maxlen=REMEMBERED_SESSIONS)
        self._own = False  # whether the lease is one of the own sessions'; remembered while it stays the same
        self._gone: str | None = None  # the token whose node ZooKeeper said is gone
        self._present: str | None = None  # the token whose node ZooKeeper said is there
        self._checking: str | None = None  # the token that ZooKeeper is being asked about
        self._outdated = False  # whether something changed since ZooKeeper was asked: its answer may be too old
        self._watched_from = PAST  # when ZooKeeper said last that a node is there
        self._orphan: str | None = None  # session id of a lease whose process is gone
        self.lease: Lease | None = None
        # Where to ask the holder; None if it has not said so, or if this process never asks.
        self.contact: ContactAddress | None = None
        self.check_due = NEVER  # when to ask ZooKeeper about the attestation

    def observe(self, lease: Lease, at: float, contact: ContactAddress | None = None) -> None:
        """The lease was in the store; ``at`` is when the answer came, in boot-clock seconds."""
        self.contact = contact if self._own_contact not in (None, contact) else None
        renewed = lease != self.lease and (self.lease is None or lease.renewed_since(self.lease))
        if self.lease is None or self.lease.owner != lease.owner:
            self._hdfs_interval = PollInterval(self._timing)  # every holder has a rhythm of its own
        self._hdfs_interval.looked(at, renewed=renewed)
        self.lease = lease
        if renewed:
            self._since = at
            self._own = lease.owner in self._own_sessions

    def clear(self) -> None:
        """The store holds no lease; a rename of the one seen before would find nothing."""
        self.lease, self._since, self._own, self.contact = None, NEVER, False, None

    def abandon(self, session_id: str) -> None:
        """This contender has dropped that session id of its own, whatever the store says."""
        if session_id not in self._own_sessions:
            self._own_sessions.append(session_id)
        self._own = self._own or (self.lease is not None and self.lease.owner == session_id)

    # --- when it may be seized

    def expiry(self) -> float:
        """When the lease may be seized whatever ZooKeeper says: it did not change for the whole of its time to live."""
        # Names never come back, so the same name at two times means that nothing happened in between. A name also says
        # how many of the last changes were operators': those say nothing of the holder, and do not restart the wait.
        if self.lease is None:
            return NEVER
        if self.lease.mode is Mode.RELEASED:
            return self._since + self._timing.courtesy
        return self._since + self.lease.ttl * (1 + self._timing.drift)

    def expired_reason(self, now: float) -> str | None:
        """Why the lease may be seized now, as one word for the history; None if it may not."""
        lease = self.lease
        if lease is None:
            return None
        if lease.mode is Mode.RELEASED:
            return self._released_reason(lease, now)
        if self._own:
            return "own"
        if now >= self.expiry():
            return "expired"
        if self._orphan == lease.owner:
            return "process-gone"
        return "session-gone" if self._session_gone and (self.contact is None or now >= self._hearing.ends()) else None

    @property
    def _session_gone(self) -> bool:
        lease = self.lease
        return lease is not None and lease.mode is Mode.ZOOKEEPER and self._gone == lease.attestation

    def hearing_ends(self) -> float:
        """When the lease of a holder that has answered may be seized although it lives; never, if none has."""
        return self._hearing.ends() if self._session_gone and self.contact is not None else NEVER

    def next_question(self) -> tuple[str, ContactAddress] | None:
        """The token whose node is gone, and the process to ask now whether it lives; None if there is none to ask."""
        if self.lease is None or self.contact is None or not self._session_gone or not self._hearing.ask():
            return None
        return self.lease.attestation, self.contact

    def on_asked(self, token: str, *, lives: bool) -> None:
        """The process that this token attested has answered, or has not."""
        self._hearing.answer(token, lives=lives)

    def _released_reason(self, lease: Lease, now: float) -> str | None:
        if lease.paused or lease.successor in ("", ANYBODY, self._contender):
            return "released"
        return "successor-absent" if now >= self.expiry() else None

    def may_become(self, released: Lease) -> bool:
        """Whether the lease can have been released as this one since it was read, and for this contender."""
        known = self.lease
        if known is None or self.owner != released.owner or released.mode is not Mode.RELEASED:
            return False
        return released.sequence > known.sequence and released.successor in ("", ANYBODY, self._contender)

    # --- what ZooKeeper says of the attestation: it is asked only after the lease was read

    def next_check(self, attestation: Attestation, now: float) -> str | None:
        """The token to ask ZooKeeper about now; None if there is nothing to ask."""
        if not self._attestable(attestation) or self.lease is None or now < self.check_due:
            return None
        if self._checking is not None or self._gone == self.lease.attestation:
            return None
        self._checking, self._outdated = self.lease.attestation, False
        return self._checking

    def on_checked(self, token: str, present: bool | None, now: float) -> None:
        """Take ZooKeeper's answer; ``present`` is None if it could not say."""
        if self._checking != token:
            return
        self._checking = None
        # A node that is gone never comes back: its session is over.
        self._gone = token if present is False else None
        if present is False:
            self._hearing.begin(token, now)
        self._present = token if present and not self._outdated else None
        self._watched_from = now
        self.check_due = now + self._timing.poll if present is None else now if self._outdated else NEVER

    def recheck(self, now: float) -> None:
        """Something has changed: what ZooKeeper said, or is about to say, must be asked again."""
        self._present, self.check_due, self._outdated = None, now, True

    def check_unless_watched(self, now: float) -> None:
        """Ask ZooKeeper now, unless it watches the node that attests the lease, and was asked not long ago."""
        watched = self.lease is not None and self._present == self.lease.attestation
        if not watched or now >= self._watched_from + self._timing.long_ttl:
            self.check_due = min(self.check_due, now)

    @property
    def owner(self) -> str | None:
        """Session id under which another process may hold the lease; None if none can."""
        held = self.lease is not None and self.lease.mode is not Mode.RELEASED and not self._own
        return self.lease.owner if held and self.lease else None

    def mark_process_gone(self, session_id: str) -> None:
        """The process that was granted this session id has ended, so no lease of it is held, in whatever mode."""
        # Only this session id ends: one that the same process is granted later shows that it lives.
        self._orphan = session_id

    def poll_interval(self, attestation: Attestation) -> float:
        """Seconds after which to read the lease again."""
        # Long while ZooKeeper watches the lease for this standby, else short. A lease that HDFS alone carries is not
        # read before its holder is about to renew it, and that of a paused job is not waited for.
        if self.lease is not None and self._attestable(attestation) and self._present == self.lease.attestation:
            return self._timing.long_ttl / RENEWALS_PER_TTL
        if self.lease is not None and self.lease.paused:
            return self._timing.renewal
        by_hdfs = self.lease is not None and self.lease.mode is Mode.HDFS
        return self._hdfs_interval.seconds() if by_hdfs else self._timing.poll

    def _attestable(self, attestation: Attestation) -> bool:
        return self.lease is not None and self.lease.mode is Mode.ZOOKEEPER and attestation.answers
