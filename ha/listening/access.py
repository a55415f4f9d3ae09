"""Access to a server: TLS, tokens, networks and names, as the settings say."""

import ipaddress
from collections.abc import Callable

import msgspec
from starlette.types import ASGIApp, Scope

from ha.config.settings import Settings
from ha.listening.hosts import HostCheck
from ha.listening.tls import ServerTls
from ha.listening.tokens import Role, TokenCheck, Tokens


class Access(msgspec.Struct, frozen=True):
    """The access rules of a listening server: who may connect, and what a request must bring.

    Attributes:
        hosts: names in Host headers that are answered, besides those of this host.
        networks: those that connections may come from; empty for all.
        tls: None without TLS.
        tokens: of each role.
    """

    hosts: tuple[str, ...] = ()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    tls: ServerTls | None = None
    tokens: Tokens = Tokens({})  # it never changes

    def admits(self, address: str) -> bool:
        """Whether a connection from this IP address is accepted."""
        if not self.networks:
            return True
        found = ipaddress.ip_address(address.partition("%")[0])
        mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
        return any((mapped or found) in each for each in self.networks)

    def guard(self, application: ASGIApp, host: str, needed: Callable[[Scope], Role | None]) -> ASGIApp:
        """Return the application behind the checks of names and tokens.

        Args:
            application: answers.
            host: what is listened on.
            needed: the role that a request needs; None for no token at all. Without files of tokens everybody may read.
        """
        return HostCheck(TokenCheck(application, self.tokens, needed), (host, *self.hosts))


def access_of(settings: Settings) -> Access:
    """Return the access that the settings describe.

    Raises:
        InvalidSettings: a file cannot be read.
    """
    certificate = settings.http_certificate
    return Access(
        settings.hosts,
        settings.networks,
        ServerTls(certificate, settings.http_key, settings.http_client_ca) if certificate else None,
        tokens_of(settings.http_read_tokens, settings.http_operate_tokens),
    )


def tokens_of(read: str, operate: str) -> Tokens:
    """Return the tokens in the files of the two roles; an empty path stands for none.

    Raises:
        InvalidSettings: a file cannot be read.
    """
    files = {Role.READ: ("http_read_tokens", read), Role.OPERATE: ("http_operate_tokens", operate)}
    return Tokens({role: each for role, each in files.items() if each[1]})
