"""The connections of one listening socket: how many there may be, and which one has to go when there are too many.

Connections are grouped by the address that they come from. The largest group loses one, so a flood from one host does
not push out the connections of any other host.
"""

import ipaddress
import resource
from collections.abc import Callable, Iterable
from dataclasses import dataclass

MOST = 1024  # more are never needed, whatever the system allows
LEAST = 8  # so many are allowed even where the system allows next to nothing

SHARE = 4
"""A listening socket may hold this part of all descriptors. A process has at most two such sockets, so half of all
descriptors are left for the stores, the command and the program's own files."""


def most_connections() -> int:
    """Return the number of connections that one listening socket of this process may hold."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(LEAST, min(MOST, soft // SHARE))


SHARED_BITS = 64  # a host of IPv6 usually has all addresses that agree in these first bits


@dataclass(eq=False, slots=True)
class Connection:
    """One connection."""

    group: str  # what counts as one host
    since: float  # seconds of the clock at which it was accepted
    close: Callable[[], None]
    busy: bool = False  # whether a request is being handled


class Connections:
    """All connections of a listening socket, for one thread."""

    def __init__(self, most: int, spared: float = 0.0) -> None:
        """Begin with none; a connection is spared for some seconds: a newer one goes instead."""
        self.most, self._spared = most, spared
        self._groups: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, close: Callable[[], None], at: float) -> Connection:
        """Add a connection that was accepted from this IP address at this time."""
        made = Connection(group_of(address), at, close)
        self._groups.setdefault(made.group, {})[made] = None
        self._count += 1
        return made

    def remove(self, connection: Connection) -> None:
        """Remove a connection; no error if it was removed before."""
        group = self._groups.get(connection.group, {})
        if connection in group:
            del group[connection]
            self._count -= 1
            if not group:
                del self._groups[connection.group]

    def surplus(self, at: float) -> Connection | None:
        """Return the connection that has to go now; None if there is room for all."""
        # It is of a host that has the most: the oldest that is neither busy nor spared, else the newest.
        if self._count <= self.most:
            return None
        size = max(map(len, self._groups.values()))
        largest = [each for each in self._groups.values() if len(each) == size]
        idle = [found for each in largest if (found := self._oldest_idle(each, at)) is not None]
        if idle:
            return min(idle, key=_since)
        return max((next(reversed(each)) for each in largest), key=_since)

    def _oldest_idle(self, group: Iterable[Connection], at: float) -> Connection | None:
        return next((each for each in group if not each.busy and at - each.since >= self._spared), None)


def _since(connection: Connection) -> float:
    return connection.since


def group_of(address: str) -> str:
    """Return what counts as one host: an IPv4 address, or the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, SHARED_BITS), strict=False))
