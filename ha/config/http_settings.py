"""Settings of HTTP: the API that processes offer, and the calls to job masters."""

import re
from typing import TYPE_CHECKING

import msgspec

from ha.config.setting import setting, shown
from leader.errors import InvalidSettings

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

_HOST = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of HTTP: whose requests are answered, and which credentials job masters are shown."""

    listen: str = setting(
        "",
        "Address of the HTTP API: `host:port`. Port 0 takes a free port.",
        shown="no HTTP API; for `ha host daemon` and `ha host agent` a free port of 127.0.0.1",
    )
    http_hosts: str = setting(
        "",
        "Further names that requests to the HTTP API may have in their Host header: `a.example.com,b`. `*.example.com` "
        "means all names below it, and `*` all names.",
        shown="this host's own names, and the host in `listen`; IP addresses need no list",
    )
    http_networks: str = setting(
        "",
        "Networks and addresses from which connections to the HTTP API are accepted: `10.1.0.0/16,192.168.7.9`.",
        shown="all",
    )
    http_certificate: str = setting(
        "",
        "File with the certificate of the HTTP API and its chain, in PEM. With it, the API speaks TLS only.",
        shown="no TLS",
    )
    http_key: str = setting(
        "", "File with the key of `http_certificate`, in PEM, without a password.", shown="the certificate's file"
    )
    http_client_ca: str = setting(
        "",
        "File with authorities, in PEM. Clients of the HTTP API must have a certificate of one of them.",
        shown="clients need no certificate",
    )
    http_read_tokens: str = setting(
        "",
        "File with the tokens of clients that may read, one a line. As soon as there is a file of tokens, each request "
        "but those of probes and the page's files needs one.",
        shown="no tokens",
    )
    http_operate_tokens: str = setting(
        "",
        "File with the tokens of clients that may also change something, one a line.",
        shown="no tokens: nothing can be changed over HTTP",
    )
    http_savepoint_roots: str = setting(
        "",
        "Directories below which savepoints that are asked for over HTTP may be: "
        "`hdfs://names/savepoints,hdfs://names/backup`.",
        shown="none: over HTTP, savepoints are the job's own",
    )
    jobmaster_ca: str = setting(
        "",
        "File with the authorities, in PEM, that sign the certificates of job masters. With it, only job masters with "
        "an address of `https://` are called.",
        shown="those of the system",
    )
    jobmaster_token: str = setting(
        "",
        "File with the token that calls to job masters show, over TLS only. With it, only job masters with an address "
        "of `https://` are called.",
        shown="no token",
    )
    jobmaster_certificate: str = setting(
        "", "File with the certificate, in PEM, that callers of job masters show.", shown="no certificate is shown"
    )
    jobmaster_key: str = setting(
        "", "File with the key of `jobmaster_certificate`, in PEM, without a password.", shown="the certificate's file"
    )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names in ``http_hosts``. InvalidSettings: one of them is no name."""
        names = _listed(self.http_hosts)
        for each in names:
            if not _HOST.fullmatch(each):
                raise InvalidSettings(
                    f"http_hosts has {shown(each)}: each must be a host's name, such as a.example.com or *.example.com."
                )
        return names

    @property
    def savepoint_roots(self) -> tuple[str, ...]:
        """The directories in ``http_savepoint_roots``. InvalidSettings: one of them is no URI."""
        roots = _listed(self.http_savepoint_roots)
        for each in roots:
            if "://" not in each or ".." in each.split("/"):
                raise InvalidSettings(
                    f"http_savepoint_roots has {shown(each)}: each must be as hdfs://names/savepoints."
                )
        return roots

    @property
    def networks(self) -> "tuple[IPv4Network | IPv6Network, ...]":
        """The networks in ``http_networks``. InvalidSettings: one of them is no network."""
        if not self.http_networks:
            return ()
        import ipaddress  # noqa: PLC0415  # most processes need none

        try:
            return tuple(ipaddress.ip_network(each) for each in _listed(self.http_networks))
        except ValueError as error:
            raise InvalidSettings(
                f"http_networks is {shown(self.http_networks)}: {error}; write networks such as 10.1.0.0/16."
            ) from error

    def validate(self) -> None:
        """Check these settings: see :meth:`ha.config.settings.Settings.validate`."""
        _ = self.hosts, self.networks, self.savepoint_roots  # raises if one is none
        if self.jobmaster_key and not self.jobmaster_certificate:
            raise InvalidSettings(
                "jobmaster_key is of no use without jobmaster_certificate: set it, or leave both out."
            )
        if (self.http_key or self.http_client_ca) and not self.http_certificate:
            raise InvalidSettings(
                "http_key and http_client_ca are of no use without http_certificate: set it, or leave them out."
            )


def _listed(text: str) -> tuple[str, ...]:
    """Read a list with commas."""
    return tuple(each.strip() for each in text.split(",")) if text.strip() else ()
