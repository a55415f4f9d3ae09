"""What a standby has seen of somebody else's lease, and when it may seize it."""

from collections import deque

from leader.lease import ANYBODY, Attestation, Lease, Mode
from leader.rhythm import Rhythm
from leader.timing import RENEWALS_PER_TTL, Timing

NEVER = float("inf")

REMEMBERED_SESSIONS = 16
"""Own session ids of the past: a lease under one of them is held by nobody, since we do not."""


class Observation:
    """The lease as it was last read, since when it reads like that, and what ZooKeeper says of its attestation."""

    def __init__(self, contender: str, timing: Timing) -> None:
        self._contender = contender
        self._timing = timing
        self._since = NEVER
        self._rhythm = Rhythm(timing)
        self._own_sessions: deque[str] = deque(maxlen=REMEMBERED_SESSIONS)
        self._gone: str | None = None
        self._present: str | None = None
        self._checking: str | None = None
        self._doubted = False
        """Whether something has changed since ZooKeeper was asked: the answer may be older than that."""
        self._orphan: tuple[str, str] | None = None
        """Session id and attestation of a lease whose process is gone."""
        self._own = False
        """Whether the lease is one of the own sessions'; known for longer than those are, while it stays the same."""
        self.lease: Lease | None = None
        self.check_due = NEVER

    def see(self, lease: Lease, at: float) -> None:
        """The lease was in the store; ``at`` is when the answer came, in boot-clock seconds."""
        changed = lease != self.lease
        if self.lease is None or self.lease.owner != lease.owner:
            self._rhythm = Rhythm(self._timing)  # its holder's, and nobody else's
        self._rhythm.looked(at, renewed=changed)
        if changed:
            self.lease, self._since = lease, at
            self._own = lease.owner in self._own_sessions

    def forget(self) -> None:
        """There is no lease in the store; a rename of the one seen before would find nothing."""
        self.lease, self._since, self._own = None, NEVER, False

    def disown(self, session_id: str) -> None:
        """Nothing is held under this session id of ours any more, whatever the store says."""
        if session_id not in self._own_sessions:
            self._own_sessions.append(session_id)
        self._own = self._own or (self.lease is not None and self.lease.owner == session_id)

    def expiry(self) -> float:
        """When the lease may be seized whatever ZooKeeper says: it did not change for the whole of its ttl.

        Names never come back, so the same name at two times means that nothing happened in between.
        """
        if self.lease is None:
            return NEVER
        if self.lease.mode is Mode.RELEASED:
            return self._since + self._timing.courtesy
        return self._since + self.lease.ttl * (1 + self._timing.drift)

    def seizable(self, now: float) -> str | None:
        """Why the lease may be seized now, as one word for the history; None if it may not."""
        lease = self.lease
        if lease is None:
            return None
        if lease.mode is Mode.RELEASED:
            return self._free(lease, now)
        if self._own:
            return "own"
        if now >= self.expiry():
            return "expired"
        return self._unattested(lease) if lease.mode is Mode.ZOOKEEPER else None

    def _unattested(self, lease: Lease) -> str | None:
        if self._gone == lease.attestation:
            return "session-gone"
        return "process-gone" if self._orphan == (lease.owner, lease.attestation) else None

    def _free(self, lease: Lease, now: float) -> str | None:
        if lease.successor in ("", ANYBODY, self._contender):
            return "released"
        return "successor-absent" if now >= self.expiry() else None

    # --- ZooKeeper's word on the attestation: asked for only after the lease was read

    def check(self, attestation: Attestation, now: float) -> str | None:
        """The token to ask ZooKeeper about now; None if there is nothing to ask."""
        if not self._attestable(attestation) or self.lease is None or now < self.check_due:
            return None
        if self._checking is not None or self._gone == self.lease.attestation:
            return None
        self._checking, self._doubted = self.lease.attestation, False
        return self._checking

    def checked(self, token: str, present: bool | None, now: float) -> None:
        """ZooKeeper's answer; None if it could not say."""
        if self._checking != token:
            return
        self._checking = None
        # A node that is gone never comes back: its session is over.
        self._gone = token if present is False else None
        self._present = token if present and not self._doubted else None
        self.check_due = now + self._timing.poll if present is None else now if self._doubted else NEVER

    def doubt(self, now: float) -> None:
        """Something has changed: what ZooKeeper said, or is saying, must be asked again."""
        self._present, self.check_due, self._doubted = None, now, True

    def process_gone(self) -> None:
        """The process that holds the lease has ended.

        So has this lease's session id, and no other: one that the same process is granted later shows that it lives.
        """
        if self.lease is not None:
            self._orphan = self.lease.owner, self.lease.attestation

    def poll_interval(self, attestation: Attestation) -> float:
        """Seconds after which to read the lease again.

        Seldom while ZooKeeper watches it for us; else often, but not before its holder is about to renew it again.
        """
        if self.lease is not None and self._attestable(attestation) and self._present == self.lease.attestation:
            return self._timing.long_ttl / RENEWALS_PER_TTL
        by_hdfs = self.lease is not None and self.lease.mode is Mode.HDFS
        return self._rhythm.pause() if by_hdfs else self._timing.poll

    def _attestable(self, attestation: Attestation) -> bool:
        return self.lease is not None and self.lease.mode is Mode.ZOOKEEPER and attestation.answers
