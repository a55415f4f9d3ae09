"""Security: how a process logs in to ZooKeeper, whether it speaks TLS, and who may see and change its nodes.

Passwords and keys are in files, and only their paths are here. A file is read for each connection, so a new content
counts from the next connection on.
"""

import importlib.util
import re
from pathlib import Path

import msgspec

from store.errors import Invalid

NONE, DIGEST, SASL_DIGEST, KERBEROS = "none", "digest", "sasl-digest", "kerberos"
OPEN, CREATOR = "open", "creator"

_READER = re.compile(r"[a-z0-9]+:[^,\s]+")
_LIBRARIES = {
    SASL_DIGEST: ("puresasl",),
    KERBEROS: ("puresasl", "kerberos"),
}


class CredentialsError(Exception):
    """A file with credentials cannot be used; the message is a sentence for a log."""


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a ZooKeeper that wants to know who asks.

    Attributes:
        auth: ``none``, ``digest``, ``sasl-digest`` or ``kerberos``.
        credentials: path of a file with ``user:password``, for the two digests.
        service: first part of the servers' Kerberos principal.
        ca: path of the certificates (PEM) of the authorities that sign the servers'; with it, TLS is spoken.
        certificate: path of this process's own certificate (PEM), if the servers want one.
        key: path of its key; empty if it is in the same file.
        acl: ``open``, ``creator``, or empty for ``creator`` as soon as this process logs in.
        readers: who else may read, as ``scheme:id,scheme:id``.
    """

    auth: str = NONE
    credentials: str = ""
    service: str = "zookeeper"
    ca: str = ""
    certificate: str = ""
    key: str = ""
    acl: str = ""
    readers: str = ""

    @property
    def logs_in(self) -> bool:
        """Whether ZooKeeper is told who this process is."""
        return self.auth != NONE or bool(self.certificate)

    @property
    def closed(self) -> bool:
        """Whether only their creator may change the nodes that this process makes."""
        return self.acl == CREATOR or (not self.acl and self.logs_in)

    def check(self) -> None:
        """Raise unless these go together.

        Raises:
            Invalid: the message says in one sentence which do not, and what to do.
        """
        if self.auth not in (NONE, DIGEST, SASL_DIGEST, KERBEROS):
            raise Invalid(f"zookeeper_auth is {self.auth!r}: it must be 'none', 'digest', 'sasl-digest' or 'kerberos'.")
        if self.acl not in ("", OPEN, CREATOR):
            raise Invalid(f"zookeeper_acl is {self.acl!r}: it must be 'open' or 'creator'.")
        if self.auth in (DIGEST, SASL_DIGEST) and not self.credentials:
            raise Invalid(
                f"zookeeper_auth is {self.auth!r} without a password: let zookeeper_credentials name a file "
                "with user:password in it."
            )
        if self.auth not in (DIGEST, SASL_DIGEST) and self.credentials:
            raise Invalid(f"zookeeper_credentials clashes with zookeeper_auth {self.auth!r}, which takes no password.")
        if (self.certificate or self.key) and not self.ca:
            raise Invalid("zookeeper_tls_certificate and zookeeper_tls_key need zookeeper_tls_ca, which begins TLS.")
        if self.key and not self.certificate:
            raise Invalid("zookeeper_tls_key needs zookeeper_tls_certificate, the certificate of that key.")
        self._check_acl()
        self._check_libraries()

    def reader_ids(self) -> list[tuple[str, str]]:
        """Return scheme and id of each reader."""
        named = (each.strip() for each in self.readers.split(",") if each.strip())
        return [(scheme, who) for scheme, _, who in (each.partition(":") for each in named)]

    def _check_acl(self) -> None:
        if self.acl == CREATOR and not self.logs_in:
            raise Invalid(
                "zookeeper_acl is 'creator' and ZooKeeper is not told who creates: "
                "set zookeeper_auth, or zookeeper_tls_certificate, or leave zookeeper_acl out."
            )
        if self.readers and not self.closed:
            raise Invalid("zookeeper_readers names readers of nodes that are open to everybody: leave it out.")
        for each in self.readers.split(","):
            if self.readers and not _READER.fullmatch(each.strip()):
                raise Invalid(f"zookeeper_readers has {each!r}: write scheme:id, such as sasl:reports or world:anyone.")

    def _check_libraries(self) -> None:
        for library in _LIBRARIES.get(self.auth, ()):
            if importlib.util.find_spec(library) is None:
                raise Invalid(f"zookeeper_auth {self.auth!r} needs more libraries: pip install 'hybrid-ha[kerberos]'.")


def read_credentials(path: str) -> tuple[str, str]:
    """Return user and password of a file.

    Raises:
        CredentialsError: it cannot be read, or has another form.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise CredentialsError(f"zookeeper_credentials: {path} cannot be read ({reason}).") from error
    user, colon, password = text.partition(":")
    if not user or not colon or not password or "\n" in text:
        raise CredentialsError(f"zookeeper_credentials: {path} must have one line, user:password.")
    return user, password
