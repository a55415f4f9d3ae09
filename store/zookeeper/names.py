"""Names: the addresses of ZooKeeper's servers, found side by side, so that one dead name holds up no connection.

A resolver may take ten seconds to say that a name is not there. Kazoo asks for one name after the other, on the thread
that keeps the session alive.
"""

import ipaddress
import random
import socket
import threading
from collections.abc import Callable, Sequence

from store.clock import now

WAIT_S = 0.5  # for the slowest name, if another one has an address
_NONE_S = 2.0  # for the first name, if none has an address: the caller comes again

Server = tuple[str, int]
Address = tuple[str, str, int]  # host, its address, port


class Names:
    """The servers of one client. :meth:`addresses` is called by one thread."""

    def __init__(self, look_up: Callable[[Server], Sequence[Address]] | None = None) -> None:
        """Know nothing; ``look_up`` takes the place of the resolver in tests."""
        self._look_up = look_up or _look_up
        self._changed = threading.Condition()
        self._known: dict[Server, list[Address]] = {}
        self._asked: dict[Server, float] = {}  # since when a name is being looked up

    def addresses(self, servers: Sequence[Server]) -> list[Address]:
        """Return all addresses of these servers, shuffled; of a name that takes long, those that it had before."""
        for server in dict.fromkeys(servers):
            self._ask(server)
        began = now()
        with self._changed:
            while True:
                found = [each for server in dict.fromkeys(servers) for each in self._known.get(server, ())]
                slow = [at for server in servers if (at := self._asked.get(server)) is not None]
                until = max(slow, default=now()) + WAIT_S if found else began + _NONE_S
                if not slow or now() >= until:
                    break
                self._changed.wait(until - now())
        random.shuffle(found)  # a client of each server, whatever the order in the settings
        return found

    def _ask(self, server: Server) -> None:
        with self._changed:
            if server in self._asked:
                return  # a resolver that hangs is not asked a second time
            if _is_address(server[0]):
                self._known[server] = [(server[0], server[0].strip(), server[1])]
                return
            self._asked[server] = now()
        try:
            threading.Thread(target=self._answer, args=(server,), name="ha-name", daemon=True).start()
        except RuntimeError:  # the host has no thread left
            self._answer(server)

    def _answer(self, server: Server) -> None:
        found: list[Address] | None = []
        try:
            found = list(self._look_up(server))
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:  # the resolver does not know: what it said before may still hold
                found = None
        except (OSError, UnicodeError):
            found = None
        with self._changed:
            del self._asked[server]
            if found is not None:
                self._known[server] = found
            self._changed.notify_all()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip())
    except ValueError:
        return False
    return True


def _look_up(server: Server) -> list[Address]:
    found = socket.getaddrinfo(server[0].strip(), server[1], 0, 0, socket.IPPROTO_TCP)
    return [(server[0], str(each[4][0]), int(each[4][1])) for each in found]
