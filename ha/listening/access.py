"""Access to a server: TLS, tokens, networks and names."""

import ipaddress
from collections.abc import Callable, Iterator

import msgspec
from starlette.types import ASGIApp, Scope

from ha.listening.hosts import HostCheck
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
