"""Access to a server: TLS, tokens and networks, and the check of the Host header.

A foreign page can make a browser look its own name up again, and get an address of this host (DNS rebinding). The
browser then sends the page's name as Host. So only names of this host are answered. IP addresses need no list: they
cannot be made to lead elsewhere. A request without Host comes from no browser.
"""

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from ha.listening.problems import problem
from ha.listening.tls import ServerTls
from ha.listening.tokens import Role, TokenCheck, Tokens


class Access(msgspec.Struct, frozen=True):
    """The access rules of a listening server: who may connect, and what a request must bring."""

    hosts: tuple[str, ...] = ()  # names in Host headers that are answered, besides those of this host
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()  # that may connect; empty for all
    tls: ServerTls | None = None
    tokens: Tokens = Tokens({})  # it never changes
    savepoint_roots: tuple[str, ...] = ()  # directories below which savepoints may be, besides the job's own

    def admits(self, address: str) -> bool:
        """Whether a connection from this IP address is accepted."""
        if not self.networks:
            return True
        found = ipaddress.ip_address(address.partition("%")[0])
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return any((mapped or found) in each for each in self.networks)

    def weaknesses(self) -> Iterator[str]:
        """Yield what anybody in the network could do, each as a sentence that follows the server's name."""
        if self.tls is None and self.tokens.wanted:
            yield "takes tokens without TLS, so they can be overheard: set http_certificate."
        if not (self.tokens.wanted or self.networks or (self.tls and self.tls.asks_clients)):
            yield (
                "answers everybody who can connect: set http_read_tokens with http_certificate, http_client_ca or "
                "http_networks, or listen on 127.0.0.1."
            )

    def guard(self, application: ASGIApp, host: str, needed: Callable[[Scope], Role | None]) -> ASGIApp:
        """Return the application behind the checks of names and tokens; ``host`` is listened on."""
        # `needed` returns the role that a request needs, None for no token at all. Without files of tokens everybody
        # may read.
        return HostCheck(TokenCheck(application, self.tokens, needed), (host, *self.hosts))


ANY = "*"

_HOST = re.compile(r"(?:\[([0-9a-f:.%]+)\]|([^:\[\]]*))(?::[0-9]{1,5})?")


class HostCheck:
    """ASGI middleware: answers 421 to a request for another host."""

    def __init__(self, application: ASGIApp, names: Iterable[str]) -> None:
        """Allow this host's names, and ``names``: each may begin with ``*.``; ``*`` allows all."""
        self._application = application
        self._names = {"localhost", socket.gethostname().lower(), *(each.lower() for each in names)}
        # Its full name may need a name server, which may be slow.
        threading.Thread(target=lambda: self._names.add(socket.getfqdn().lower()), name="ha-fqdn", daemon=True).start()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        said = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        if self.allows(said):
            await self._application(scope, receive, send)
        else:
            text = "This process is not known by the name in the Host header: add it to the setting http_hosts."
            await problem(421, text)(scope, receive, send)

    def allows(self, said: str) -> bool:
        """Whether a request with this Host header is answered; empty for a request without one."""
        match = _HOST.fullmatch(said.lower())
        if match is None:
            return False
        name = (match[1] or match[2]).removesuffix(".")
        known = name in self._names or any(
            each.startswith("*.") and name.endswith(each[1:]) for each in tuple(self._names)
        )
        return not name or ANY in self._names or _is_address(name) or known


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
