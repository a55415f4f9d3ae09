"""Holding: the lease as its own holder knows it, and until when the holder may believe in it. No I/O."""

import msgspec

from leader.layout.lease import Attestation, Lease, Mode


class Holding:
    """Every entry of the holder's own lease that may be in the store now.

    A renewal without an answer may have been executed, or may be executed later. So a set of entries is kept, and the
    belief is the *least* that any of them promises: sending a renewal caps the belief at once, as the protocol
    requires.

    A list only shows where the next rename begins: a NameNode lists what its journal does not have yet, and the next
    NameNode may never hear of it. Only an acknowledged rename is there to stay, with everything it was built on.
    """

    def __init__(self, *, drift: float) -> None:
        self._drift = drift
        self._promises: dict[Lease, float] = {}
        self._attested: dict[str, float] = {}
        self._highest = -1
        self.current: Lease | None = None  # the entry that was acknowledged last; None if nothing is held
        self.present: Lease | None = None  # listed or acknowledged last: the source of the next rename

    def __contains__(self, lease: Lease) -> bool:
        return lease in self._promises

    @property
    def next_sequence(self) -> int:
        """A sequence that no entry of this session ever had."""
        # A NameNode may have shown an entry and forgotten it. Standbys count from when they first saw a name, so an
        # entry that came back later under that name would be taken for the old one.
        return self._highest + 1

    def started(self, lease: Lease) -> float:
        """Boot-clock seconds when the lease was first sent."""
        return self._promises[lease]

    def pending(self, like: Lease) -> Lease | None:
        """The entry that was sent last, to be sent again, if it differs from ``like`` only in its sequence."""
        # Earlier entries are never sent again: a change built on one that was shown and forgotten could be executed
        # late once that entry is there again. Nor is one sent whose number an operator has taken.
        for lease in self._promises:
            last = lease.sequence == self._highest and (self.present is None or lease.sequence > self.present.sequence)
            if last and msgspec.structs.replace(lease, sequence=like.sequence) == like:
                return lease
        return None

    def leap(self, sequence: int) -> None:
        """Give no entry a sequence up to this one: another process of this session may have used them."""
        self._highest = max(self._highest, sequence)

    def send(self, lease: Lease, start: float) -> None:
        """An entry is about to be sent. A second try keeps the start of the first, because either may be executed."""
        self._promises.setdefault(lease, start)
        self._highest = max(self._highest, lease.sequence)

    def see(self, lease: Lease) -> None:
        """The entry is listed."""
        self.present = lease

    def confirm(self, lease: Lease) -> None:
        """The entry was acknowledged. So its source is gone, and every other try from that source has failed."""
        self._promises = {lease: self._promises[lease]}
        self.current = self.present = lease

    def adopt(self, lease: Lease) -> None:
        """Somebody marked our entry with a request. It promises only the least that we had promised."""
        self._promises[lease] = min(self._promises.values())
        self._highest = max(self._highest, lease.sequence)
        self.present = lease

    def clear(self) -> None:
        """Nothing is held."""
        self._promises, self._highest = {}, -1
        self.current = self.present = None

    def attest(self, attestation: Attestation) -> None:
        """ZooKeeper has confirmed a session. Its confirmation of an earlier session lasts as long as it was given."""
        promised = {lease.attestation for lease in self._promises}
        self._attested = {token: until for token, until in self._attested.items() if token in promised}
        if attestation.token is not None:
            self._attested[attestation.token] = attestation.until

    def until(self) -> float:
        """Boot-clock seconds until which no other can hold the lease; minus infinity if it is not held."""
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
