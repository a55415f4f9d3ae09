"""Contact: the address where a leader's process answers that it lives, and that answer.

    contact~<epoch>~<session id>~<escaped address>~<port>~<process>

Its leader writes it beside the lease, in HDFS. It counts for the lease of that session id and for no other. Nothing
here comes from ZooKeeper, so only users that can write into the job's directory can give a leader another address.
"""

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache

from leader.errors import InvalidName
from leader.layout import names
from leader.layout.information import CONTACT, REMEMBERED, Record
from leader.layout.lease import Lease, Mode

MAX_PORT = 65535

_ENTRY = re.compile(CONTACT + r"([0-9]{10})~([0-9a-f-]{36})~([A-Za-z0-9._-]{2,128})~([1-9][0-9]{0,4})~([0-9a-f]{32})")
_GREETING = re.compile(rb"hybrid-ha ([0-9a-f]{32})\n")

GREETING_BYTES = len("hybrid-ha ") + 32 + 1  # every greeting has this length
MOST_NOTICE_BYTES = 1024  # no notice is longer


@dataclass(frozen=True, slots=True)
class ContactAddress:
    """Where a process listens, and which process it is."""

    host: str  # an IP address and never a name, because a probe cannot wait for a name server
    port: int  # from 1 to 65535
    process: str  # 32 random hexadecimal digits, the same for as long as the process lives, whatever its sessions do

    @property
    def greeting(self) -> bytes:
        """The first line on every connection; apart from that the process only sends notices of releases."""
        return f"hybrid-ha {self.process}\n".encode()


def greeted_by(greeting: bytes) -> str | None:
    """The process that sends this greeting; None if no process of ours does."""
    match = _GREETING.fullmatch(greeting)
    return match[1].decode() if match else None


@dataclass(frozen=True, slots=True)
class ReleaseNotice:
    """A process says that it has released its lease of a job: a hint, since only the store knows."""

    job: str  # the job's name
    lease: Lease  # the lease as it was released

    @property
    def line(self) -> bytes:
        """The line that the process sends."""
        return f"released {self.job} {self.lease.name}\n".encode()

    @classmethod
    def parse(cls, line: bytes) -> "ReleaseNotice | None":
        """Read a line without its end; None if it is none of ours."""
        match line.decode("ascii", "replace").split(" "):
            case ["released", job, name] if (lease := Lease.parse(name)) and lease.mode is Mode.RELEASED:
                return cls(job, lease)
        return None


@dataclass(frozen=True, slots=True)
class ContactEntry:
    """One entry of the record: the contact of the leader that was granted this epoch and session id."""

    epoch: int
    session_id: str
    contact: ContactAddress

    @property
    def name(self) -> str:
        """The entry's name."""
        where = self.contact
        escaped = names.escape(where.host)
        return f"{CONTACT}{self.epoch:010d}~{self.session_id}~{escaped}~{where.port}~{where.process}"

    @classmethod
    @lru_cache(maxsize=REMEMBERED)
    def parse(cls, name: str) -> "ContactEntry | None":
        """Read a name; None if no leader could have written it."""
        match = _ENTRY.fullmatch(name)
        if match is None or int(match[4]) > MAX_PORT or not names.is_session_id(match[2]):
            return None
        try:
            host = names.unescape(match[3])
            plain = str(ipaddress.ip_address(host)) == host and "%" not in host
        except (InvalidName, ValueError):
            return None
        return cls(int(match[1]), match[2], ContactAddress(host, int(match[4]), match[5])) if plain else None


def entries(record: Record) -> frozenset[ContactEntry]:
    """The contacts of a record, including those of earlier epochs."""
    return frozenset(filter(None, map(ContactEntry.parse, record.contacts)))


def holders(record: Record, directory: names.LeaderDirectory) -> ContactAddress | None:
    """Where the process of the lease's holder listens; None if it does not say so."""
    # It counts only if the leader of this directory has written it, and still holds the lease. Two that contradict each
    # other are damage from outside: neither counts.
    if record.lease is None or record.lease.owner != directory.session_id:
        return None
    theirs = (directory.epoch, directory.session_id)
    found = [each.contact for each in entries(record) if (each.epoch, each.session_id) == theirs]
    return found[0] if len(found) == 1 else None
