"""Lease: who holds it, until when it must be renewed, and what attests it.

A lease is one entry of the record directory; its name says all of it. To renew, to switch and to seize is to rename
that entry to one with a higher sequence, so no name ever comes back and every rename is a compare-and-swap.

A sequence above 999,999,999 is not believed, as with epochs: no job ever reaches it. The entry was made by hand, and
the one after the highest would have no name.
"""

import re
from enum import Enum

import msgspec

from leader.layout import names

ANYBODY = "_any"  # the successor in a request to hand over to the first contender that comes; no contender's name
LOOK = "_look"  # in the successor's place: an operator has left a request, and the leader is to look; no handover

# In the successor's place: an operator has paused the job. Its leader stays; nobody seizes the lease.
PAUSED = "_paused"


class Mode(Enum):
    """How a holder shows that it is alive."""

    # An ephemeral node attests it; it is renewed seldom, in case holder and ZooKeeper fall silent.
    ZOOKEEPER = "zookeeper"
    HDFS = "hdfs"  # it is renewed often
    RELEASED = "released"  # it has no holder


LEASE = "lease~"  # the names of leases begin like this

_LEASE = re.compile(
    r"lease~(0[0-9]{9})~(zookeeper|hdfs|released)~(0|[1-9][0-9]{0,8})"
    r"~([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"~([0-9a-f-]{0,40})~([A-Za-z0-9][A-Za-z0-9._-]{0,63})~(_any|_look|_paused|[A-Za-z0-9][A-Za-z0-9._-]{0,63}|)"
    r"~(0|[1-9][0-9]{0,8})"
)


class Lease(msgspec.Struct, frozen=True):
    """One lease entry."""

    sequence: int  # one higher at every change
    mode: Mode  # how its holder shows that it is alive
    ttl_ms: int  # milliseconds after which it may be seized if it was not changed
    owner: str  # session id of the holder, or of the one that released it
    attestation: str  # names the ephemeral node that attests it; empty unless the mode is `zookeeper`
    contender: str  # the holder's name, for people and for switch-overs
    # the contender to which the holder is asked to hand over, or for which the released lease is reserved; `LOOK` if
    # the holder is asked for something else; `PAUSED`; mostly empty
    successor: str = ""
    marks: int = 0  # how many of the last changes were operators': they are no sign of life of the holder

    @property
    def name(self) -> str:
        """The entry's name."""
        return (
            f"lease~{self.sequence:010d}~{self.mode.value}~{self.ttl_ms}~{self.owner}"
            f"~{self.attestation}~{self.contender}~{self.successor}~{self.marks}"
        )

    @property
    def ttl(self) -> float:
        """Time to live in seconds."""
        return self.ttl_ms / 1000

    @property
    def paused(self) -> bool:
        """Whether an operator has paused the job: the holder stays, and no other seizes it."""
        return self.successor == PAUSED

    @classmethod
    def parse(cls, name: str) -> "Lease | None":
        """Read a name; None if it is not a lease's."""
        match = _LEASE.fullmatch(name)
        if not match:
            return None
        return cls(int(match[1]), Mode(match[2]), int(match[3]), match[4], match[5], match[6], match[7], int(match[8]))

    def asked_to(self, successor: str) -> "Lease":
        """The entry by which an operator asks the holder to hand over."""
        return msgspec.structs.replace(self, sequence=self.sequence + 1, successor=successor, marks=self.marks + 1)

    def renewed_since(self, earlier: "Lease") -> bool:
        """Whether its holder, or a new one, has changed it since it was the earlier entry: operators do not count."""
        return _unmarked(self) != _unmarked(earlier)

    def asked_to_look(self) -> "Lease":
        """The entry by which an operator has the holder look for requests; one to hand over is not forgotten."""
        return self.asked_to(self.successor or LOOK)

    def as_paused(self) -> "Lease":
        """The entry by which an operator pauses the job. It drops a request to hand over."""
        return self.asked_to(PAUSED)

    def as_resumed(self) -> "Lease":
        """The entry by which an operator ends the pause; a holder finds it like a request."""
        return self.asked_to("" if self.mode is Mode.RELEASED else LOOK)


def _unmarked(lease: Lease) -> Lease:
    """The entry on which operators have made their marks, but for what they ask."""
    return msgspec.structs.replace(lease, sequence=lease.sequence - lease.marks, successor="", marks=0)


def first_lease(session_id: str) -> Lease:
    """The entry that a job is created with: released, so that the first contender seizes it at once."""
    return Lease(0, Mode.RELEASED, 0, session_id, "", "nobody")


def lost_lease(session_id: str, long_ttl_ms: int) -> Lease:
    """The entry that an operator puts into a record without one. It has no holder, and lasts like the longest lease."""
    # A leader whose lease was taken away may believe in it for that long. If the entry is made late, beside another
    # one, the lowest sequence makes sure that it does not count.
    return Lease(0, Mode.HDFS, long_ttl_ms, session_id, "", "doctor")


class Attestation(msgspec.Struct, frozen=True):
    """ZooKeeper's confirmation of this process's session."""

    token: str | None = None  # names the ephemeral node; None while there is none
    until: float = float("-inf")  # boot-clock seconds until which no server can have declared that session dead
    usable: bool = False  # whether a lease may rely on it now; when it may not, `until` still holds
    # whether ZooKeeper answers now, so that it can be asked about others' sessions; true if `usable` is
    answers: bool = False

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "answers", self.answers or self.usable)


def check_contender(name: str) -> str:
    """Return a contender's name if it is valid, else raise InvalidName."""
    return names.check_word(name, "a contender")
