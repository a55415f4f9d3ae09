"""The liveness socket: standbys keep a connection to it, and so see at once when this process ends.

It greets each standby, and tells all of them of each lease that this process releases; it sends nothing else. It works
because the kernel closes the connections when the process ends. So the socket is never closed before that, whatever
goes wrong here. The guard of a command holds it too, so no standby is refused while the command still runs.

There is a bound on its connections, and each is greeted all the same: the one that is too many is closed after its
greeting. No standby takes that for a death, which needs a connection that is *refused* (leader/election/suspicion.py).
"""

import contextlib
import ipaddress
import logging
import secrets
import selectors
import socket
import threading
from collections import deque

from ha.config.addresses import bind, parse_listen
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.listening.connections import Connection, Connections, most_connections
from ha.listening.throttle import throttle
from leader.errors import InvalidSettings
from leader.layout.contact import ContactAddress, ReleaseNotice
from store.clock import now
from store.spare import SPARE

SPARED_S = 60.0
"""When there are too many connections of one host, the oldest is closed if it has lasted for so long, else the newest.
Standbys renew theirs in every session timeout. So those of a standby are spared, and idle ones of strangers go."""

UNSPECIFIED = ("0.0.0.0", "::")  # noqa: S104
"""Addresses that name a port alone."""

KEEPALIVE_AFTER_S = 60  # the kernel probes a standby after this much silence; it takes whole seconds
WAKES = 4096  # bytes that are read at once from this process's own threads; each stands for a notice, or for the end
ACCEPT_PAUSE_S = 1.0  # pause before the next accept if not even the spare descriptor could be had

_log = logging.getLogger("ha.liveness")
throttle(_log.name)


class LivenessSocket:
    """Greets each standby that connects, on a thread of its own, and tells it of releases; reads nothing."""

    def __init__(self, bound: socket.socket, host: str, port: int, process: str = "") -> None:
        """Start the thread."""
        # `bound`: listens already; closed by :meth:`close`. `host`: IP address that other contenders connect to.
        # `port`: port that they connect to; 0 for the one that is bound. `process`: the word of a dead process whose
        # socket and leadership are taken up; empty for a new one.
        self.contact = ContactAddress(host, port or bound.getsockname()[1], process or secrets.token_hex(16))
        self._socket = bound
        self._socket.setblocking(False)
        self._stopped = threading.Event()
        self._wakes, self._wake = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        for each in (self._socket, self._wake):
            self._selector.register(each, selectors.EVENT_READ)
        self._connections = Connections(most_connections(), SPARED_S)
        self._known: dict[socket.socket, Connection] = {}
        self._notices: deque[bytes] = deque()
        SPARE.keep()
        self._thread = threading.Thread(target=self._serve, name="ha-listener", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Descriptor of the socket, for a guard to hold too."""
        return self._socket.fileno()

    def tell(self, notice: ReleaseNotice) -> None:
        """Send a notice to all that are connected, soon."""
        self._notices.append(notice.line)
        with contextlib.suppress(OSError):  # closed, or so full that the thread wakes up anyway
            self._wakes.send(b"n", socket.MSG_DONTWAIT)

    def close(self) -> None:
        """Close the socket and all connections. Call this only when nothing is led any more."""
        self._stopped.set()
        self._wakes.send(b"x")
        self._thread.join()
        self._selector.close()
        for each in (*self._known, self._socket, self._wakes, self._wake):
            each.close()

    def _serve(self) -> None:
        while not self._stopped.is_set() or self._notices:
            for key, _ in self._selector.select():
                if key.fileobj is self._wake:
                    self._wake.recv(WAKES)
                    self._send_notices()
                elif key.fileobj is self._socket:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._known:
                    self._drop(key.fileobj)

    def _send_notices(self) -> None:
        while self._notices:
            line = self._notices.popleft()
            for connection in list(self._known):
                try:
                    whole = connection.send(line) == len(line)
                except OSError:
                    whole = False
                if not whole:  # the standby does not read, or is gone: it looks at the store instead
                    self._drop(connection)

    def _accept(self) -> None:
        try:
            connection, peer = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.error("No other process can watch this one: %s. Raise `ulimit -n`.", error.strerror)
            self._greet_and_close()
            return
        # Without this, the connection of a lost standby would stay for ever.
        # Standbys do not probe: see leader/contender/liveness_probe.py.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_AFTER_S)
        self._greet(connection)
        self._known[connection] = self._connections.add(peer[0], lambda: self._drop(connection), now())
        self._selector.register(connection, selectors.EVENT_READ)
        surplus = self._connections.surplus(now())
        if surplus is not None:
            surplus.close()
            _log.warning(
                "%d processes watch this one, the maximum: a connection of %s is closed for each new one.",
                self._connections.most,
                surplus.group,
            )

    def _greet(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # it is gone already; its end is noticed later
            connection.send(self.contact.greeting)

    def _greet_and_close(self) -> None:
        """Tell one standby that this process lives, though there is no descriptor left for its connection."""
        try:
            with SPARE.borrowed(), self._socket.accept()[0] as connection:
                self._greet(connection)
        except OSError:
            self._stopped.wait(ACCEPT_PAUSE_S)

    def _drop(self, connection: socket.socket) -> None:
        """Close a connection: it has ended, is one too many, or has sent something, which no standby does."""
        self._connections.remove(self._known.pop(connection))
        self._selector.unregister(connection)
        connection.close()


def new_liveness_socket(stores: Stores) -> LivenessSocket | None:
    """Listen as the settings of these stores say, for standbys that use the same ZooKeeper; see below."""
    zookeeper = stores.zookeeper
    return open_liveness_socket(stores.settings, zookeeper.address.servers if zookeeper is not None else ())


def open_liveness_socket(settings: Settings, servers: tuple[tuple[str, int], ...]) -> LivenessSocket | None:
    """Listen at the address in the settings; None without suspicion or ZooKeeper, or without a usable address."""
    # `servers`: host and port of each ZooKeeper server.
    # InvalidSettings: an address has the wrong form or is in use.
    if not settings.leadership.suspicion or not servers:
        return None
    host, port = "", 0
    if settings.leadership.suspicion_address:
        name, port = parse_listen(settings.leadership.suspicion_address, "suspicion_address")
        host = "" if name in UNSPECIFIED else _resolve(name)
    host = host or _address_towards(servers)
    if not host:
        _log.warning(
            "No standby will see at once that this process is gone: no address is usable; set suspicion_address."
        )
        return None
    here = host if _is_of_this_host(host) else "::" if ":" in host else "0.0.0.0"  # noqa: S104  # a container's host
    listen = f"[{here}]:{port}" if ":" in here else f"{here}:{port}"
    return LivenessSocket(bind(listen, "Fast suspicion", "suspicion_address"), host, port)


def _is_of_this_host(address: str) -> bool:
    """Whether an interface of this host has an address."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as tried:
            tried.bind((address, 0))
    except OSError:
        return False
    return True


def _resolve(name: str) -> str:
    """Return the first address of a host that other hosts can use. InvalidSettings: it has no such address."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidSettings(f"suspicion_address names {name!r}, which is not a known host.") from error
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if _is_usable(address):
            return address
    raise InvalidSettings(f"suspicion_address names {name!r}, which has only link-local addresses.")


def _address_towards(servers: tuple[tuple[str, int], ...]) -> str:
    """Return this host's address on its way to a server, preferably one that other hosts can use; empty for none."""
    found = [address for server in servers if (address := _source_address(*server))]
    return next((each for each in found if each != "::1" and not each.startswith("127.")), found[0] if found else "")


def _source_address(host: str, port: int) -> str:
    """Return this host's address on its way to another host; empty without a route or if it is link-local."""
    try:
        for family, kind, _, _, there in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as probe:
                probe.connect(there)  # sends nothing
                address = str(probe.getsockname()[0])
                if _is_usable(address):
                    return address
    except OSError:
        pass
    return ""


def _is_usable(address: str) -> bool:
    """Whether an address means the same on every host of the network, as link-local addresses do not."""
    return "%" not in address and not ipaddress.ip_address(address).is_link_local
