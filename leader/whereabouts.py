"""Where a process can be asked whether it lives: a part of the node that attests its leases. No I/O.

The node's data is for people and for standbys, and anybody may have written it: what does not parse says nothing.

    <contender> <address> <port> <process>
"""

import ipaddress
import re
from dataclasses import dataclass

MAX_PORT = 65535

_ABOUT = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63} ([0-9a-f.:]{2,45}) ([1-9][0-9]{0,4}) ([0-9a-f]{32})")
_GREETING = re.compile(rb"hybrid-ha ([0-9a-f]{32})\n")

GREETING_BYTES = len("hybrid-ha ") + 32 + 1
"""Every greeting is as long."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a process listens, and who it is.

    Attributes:
        host: an IP address and never a name: who connects cannot wait for a name server.
        port: from 1 to 65535.
        process: 32 random hexadecimal digits, the same for as long as the process lives, whatever its sessions do.
    """

    host: str
    port: int
    process: str

    @property
    def greeting(self) -> bytes:
        """What the process says to whoever connects, and all that it ever says."""
        return f"hybrid-ha {self.process}\n".encode()


def greeted_by(greeting: bytes) -> str | None:
    """The process that says this; None if no process of ours does."""
    match = _GREETING.fullmatch(greeting)
    return match[1].decode() if match else None


def encode(contender: str, whereabouts: Whereabouts | None) -> bytes:
    """Write the data of a session's node."""
    if whereabouts is None:
        return contender.encode()
    return f"{contender} {whereabouts.host} {whereabouts.port} {whereabouts.process}".encode()


def decode(data: bytes) -> Whereabouts | None:
    """Read the data of a session's node; None if it does not say where its process listens."""
    match = _ABOUT.fullmatch(data)
    if match is None or int(match[2]) > MAX_PORT:
        return None
    host = match[1].decode()
    try:
        plain = str(ipaddress.ip_address(host)) == host
    except ValueError:
        return None
    return Whereabouts(host, int(match[2]), match[3].decode()) if plain else None
