"""The socket by which standbys see at once that this process is gone: whoever connects is greeted, and that is all.

What counts is not what it says but that the kernel lets go of it when the process ends. So it is never closed before
that, whatever goes wrong here, and the guard of a command holds it too: nobody is refused while the command still runs.
"""

import contextlib
import ipaddress
import logging
import secrets
import selectors
import socket
import threading

from ha.listening import bind, parse_listen
from ha.settings import SUSPICION_ON, Settings
from leader.errors import InvalidSettings
from leader.whereabouts import Whereabouts

MOST_CONNECTIONS = 1024
"""Standbys that are connected at once. More wait in the kernel's queue, are not greeted, and suspect nothing."""

KEPT_UNHEARD = 60
"""Seconds of silence after which the kernel looks whether a standby is still there; whole ones, as it wants them."""

PAUSE = 1.0
"""Seconds without accepting, after the system had no descriptor left."""

_log = logging.getLogger("ha")


class Listener:
    """Greets whoever connects, on a thread of its own; sends nothing else, and takes nothing at all."""

    def __init__(self, bound: socket.socket, host: str, port: int) -> None:
        """Start the thread.

        Args:
            bound: listens already; closed by :meth:`close`.
            host: IP address that others connect to.
            port: likewise; 0 for the one that is bound.
        """
        self.whereabouts = Whereabouts(host, port or bound.getsockname()[1], secrets.token_hex(16))
        self._socket = bound
        self._socket.setblocking(False)
        self._stopped = threading.Event()
        self._stop, self._wake = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        for each in (self._socket, self._wake):
            self._selector.register(each, selectors.EVENT_READ)
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._serve, name="ha-listener", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Descriptor of the socket, for a guard to hold as well."""
        return self._socket.fileno()

    def close(self) -> None:
        """Let everybody go, once nothing is led any more."""
        self._stopped.set()
        self._stop.send(b"x")
        self._thread.join()
        self._selector.close()
        for each in (*self._connections, self._socket, self._stop, self._wake):
            each.close()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            for key, _ in self._selector.select():
                if key.fileobj is self._socket:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._connections:
                    self._let_go(key.fileobj)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.warning("A standby cannot be greeted: %s.", error.strerror)
            self._stopped.wait(PAUSE)
            return
        # Who is cut off or lost would be kept for ever. Standbys do not probe: see leader/lines.py.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEPT_UNHEARD)
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # it has gone already, which its end says as well
            connection.send(self.whereabouts.greeting)
        self._connections.add(connection)
        self._selector.register(connection, selectors.EVENT_READ)
        if len(self._connections) >= MOST_CONNECTIONS:
            self._selector.unregister(self._socket)

    def _let_go(self, connection: socket.socket) -> None:
        """It has ended, or says something, which nobody does who means well."""
        if len(self._connections) >= MOST_CONNECTIONS:
            self._selector.register(self._socket, selectors.EVENT_READ)
        self._connections.discard(connection)
        self._selector.unregister(connection)
        connection.close()


def open_listener(settings: Settings, servers: tuple[tuple[str, int], ...]) -> Listener | None:
    """Listen where the settings say; None if they say nowhere, or the host has no address that others could know.

    Args:
        settings: of this process.
        servers: host and port of ZooKeeper's.

    Raises:
        InvalidSettings: an address is not one, or is taken.
    """
    if settings.suspicion != SUSPICION_ON or not servers:
        return None
    host, port = "", 0
    if settings.suspicion_address:
        name, port = parse_listen(settings.suspicion_address, "suspicion_address")
        host = _resolve(name)
    host = host or _towards(servers)
    if not host:
        _log.warning("No standby will see at once that this process is gone: set suspicion_address.")
        return None
    listen = settings.suspicion_listen or (f"[{host}]:0" if ":" in host else f"{host}:0")
    return Listener(bind(listen, "Fast suspicion", "suspicion_listen"), host, port)


def _resolve(name: str) -> str:
    """The first address of a host that others can use.

    Raises:
        InvalidSettings: it has none.
    """
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidSettings(f"suspicion_address names {name!r}, and no such host is known.") from error
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if _is_good(address):
            return address
    raise InvalidSettings(f"suspicion_address names {name!r}, and no address of it is good for more than one link.")


def _towards(servers: tuple[tuple[str, int], ...]) -> str:
    """This host's address on the way to one of the servers, one that other hosts can use if there is one; or none."""
    found = [address for server in servers if (address := _source(*server))]
    return next((each for each in found if each != "::1" and not each.startswith("127.")), found[0] if found else "")


def _source(host: str, port: int) -> str:
    """This host's address on the way to another; empty if there is no way, or the address is good for one link only."""
    try:
        for family, kind, _, _, there in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as probe:
                probe.connect(there)  # which sends nothing
                address = str(probe.getsockname()[0])
                if _is_good(address):
                    return address
    except OSError:
        pass
    return ""


def _is_good(address: str) -> bool:
    """Whether an address means the same on every host of the network; a link's own do not."""
    return "%" not in address and not ipaddress.ip_address(address).is_link_local
