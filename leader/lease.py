"""The lease: who holds it, until when it must be renewed, what attests it.

A lease is one entry of the record directory; all of it is in its name. Renewing, switching and seizing are renames of
that entry to one with a higher sequence, so no name ever comes back and every rename is a compare-and-swap.
"""

import re
from enum import Enum

import msgspec

from leader import names

ANYBODY = "_any"
"""The successor in a request to hand over to whoever comes first; no contender can be called that."""


class Mode(Enum):
    """How a holder shows that it is alive."""

    ZOOKEEPER = "zookeeper"
    """An ephemeral ZooKeeper node attests it; renewed seldom, for the case that both go silent."""
    HDFS = "hdfs"
    """It is renewed often."""
    RELEASED = "released"
    """Nobody holds it."""


_LEASE = re.compile(
    r"lease~([0-9]{10})~(zookeeper|hdfs|released)~(0|[1-9][0-9]{0,8})"
    r"~([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"~([0-9a-f-]{0,40})~([A-Za-z0-9][A-Za-z0-9._-]{0,63})~(_any|[A-Za-z0-9][A-Za-z0-9._-]{0,63}|)"
)


class Lease(msgspec.Struct, frozen=True):
    """One lease entry.

    Attributes:
        sequence: one higher at every change.
        mode: how its holder shows that it is alive.
        ttl_ms: milliseconds after which it may be seized if it was not changed.
        owner: session id of the holder, or of the one that released it.
        attestation: names the ephemeral node that attests it; empty unless the mode is ``zookeeper``.
        contender: the holder's name, for people and for switch-overs.
        successor: to whom the holder is asked to hand over, or for whom the released lease is reserved; mostly empty.
    """

    sequence: int
    mode: Mode
    ttl_ms: int
    owner: str
    attestation: str
    contender: str
    successor: str = ""

    @property
    def name(self) -> str:
        """The entry's name."""
        return (
            f"lease~{self.sequence:010d}~{self.mode.value}~{self.ttl_ms}~{self.owner}"
            f"~{self.attestation}~{self.contender}~{self.successor}"
        )

    @property
    def ttl(self) -> float:
        """Time to live in seconds."""
        return self.ttl_ms / 1000

    @classmethod
    def parse(cls, name: str) -> "Lease | None":
        """Read a name; None if it is not a lease's."""
        match = _LEASE.fullmatch(name)
        if not match:
            return None
        return cls(int(match[1]), Mode(match[2]), int(match[3]), match[4], match[5], match[6], match[7])

    def asked_to(self, successor: str) -> "Lease":
        """The entry by which an operator asks the holder to hand over."""
        return msgspec.structs.replace(self, sequence=self.sequence + 1, successor=successor)


def first_lease(session_id: str) -> Lease:
    """The entry that a job is created with: released, so that the first contender seizes it at once."""
    return Lease(0, Mode.RELEASED, 0, session_id, "", "nobody")


class Attestation(msgspec.Struct, frozen=True):
    """What ZooKeeper has confirmed of this process's session.

    Attributes:
        token: names the ephemeral node; None while there is none.
        until: boot-clock seconds until which no server can have declared that session dead.
        usable: whether a lease may rely on it now; when it may not, ``until`` still holds.
        answers: whether ZooKeeper answers now, so that others' sessions can be asked about; what is usable answers.
    """

    token: str | None = None
    until: float = float("-inf")
    usable: bool = False
    answers: bool = False

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "answers", self.answers or self.usable)


class Holding:
    """The lease as its holder knows it: every entry of its own that may be in the store now.

    A renewal whose answer is missing may have been executed, or may be later. So a set is kept and not one entry, and
    the belief is the *least* that any of them promises. That caps the belief the moment a renewal is sent, as the
    protocol requires, without any special case.

    What a list shows is where the next rename begins, and no more: a NameNode lists what its journal does not have yet,
    and the next one may never have heard of it. Only an acknowledged rename is there to stay, and with it all that it
    was built on.
    """

    def __init__(self, *, drift: float) -> None:
        self._drift = drift
        self._promises: dict[Lease, float] = {}
        self._attested: dict[str, float] = {}
        self._highest = -1
        self.current: Lease | None = None
        """The entry that was acknowledged last."""
        self.present: Lease | None = None
        """The entry that was seen or acknowledged last: what is to be renamed."""

    def __contains__(self, lease: Lease) -> bool:
        return lease in self._promises

    @property
    def next_sequence(self) -> int:
        """A sequence that no entry of this session ever had.

        A NameNode may have shown one of them and forgotten it, and a standby counts from when it first saw a name: one
        that came back later would be taken for an old one.
        """
        return self._highest + 1

    def started(self, lease: Lease) -> float:
        """Boot-clock seconds when the lease was first sent."""
        return self._promises[lease]

    def pending(self, like: Lease) -> Lease | None:
        """The entry sent last, to be sent once more, if it says the same as ``like`` but for its sequence.

        None of those before it: something may have been built on one that was shown and forgotten, and be executed
        late once that is there again.
        """
        for lease in self._promises:
            last = lease.sequence == self._highest and lease != self.present
            if last and msgspec.structs.replace(lease, sequence=like.sequence) == like:
                return lease
        return None

    def send(self, lease: Lease, start: float) -> None:
        """An entry is about to be sent. A second try keeps the start of the first: either may be executed."""
        self._promises.setdefault(lease, start)
        self._highest = max(self._highest, lease.sequence)

    def see(self, lease: Lease) -> None:
        """The entry is listed."""
        self.present = lease

    def confirm(self, lease: Lease) -> None:
        """The entry was acknowledged; so its source is gone, and with it every other try from that source."""
        self._promises = {lease: self._promises[lease]}
        self.current = self.present = lease

    def adopt(self, lease: Lease) -> None:
        """Somebody marked our entry with a request; that promises no more than the least we had promised."""
        self._promises[lease] = min(self._promises.values())
        self._highest = max(self._highest, lease.sequence)
        self.present = lease

    def clear(self) -> None:
        """Nothing is held."""
        self._promises, self._highest = {}, -1
        self.current = self.present = None

    def attest(self, attestation: Attestation) -> None:
        """ZooKeeper has confirmed a session. What it confirmed of an earlier one stays true for as long as it said."""
        promised = {lease.attestation for lease in self._promises}
        self._attested = {token: until for token, until in self._attested.items() if token in promised}
        if attestation.token is not None:
            self._attested[attestation.token] = attestation.until

    def until(self) -> float:
        """Boot-clock seconds until which nobody else can hold the lease; minus infinity if it is not held."""
        if self.current is None:
            return float("-inf")
        return min(self._deadline(lease, start) for lease, start in self._promises.items())

    def _deadline(self, lease: Lease, start: float) -> float:
        if lease.mode is Mode.RELEASED:
            return float("-inf")
        deadline = start + lease.ttl * (1 - self._drift)
        if lease.mode is Mode.ZOOKEEPER:
            return min(deadline, self._attested.get(lease.attestation, float("-inf")))
        return deadline


def check_contender(name: str) -> str:
    """Return a contender's name if it is one.

    Raises:
        InvalidName: it is not.
    """
    return names.check_word(name, "a contender")
