"""Security: how a process logs in to ZooKeeper, whether it speaks TLS, and who may see and change its nodes.

Passwords and keys are in files, and only their paths are here. A file is read for each connection.
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
    """How to reach a ZooKeeper that wants to know who asks."""

    auth: str = NONE  # `none`, `digest`, `sasl-digest` or `kerberos`
    credentials: str = ""  # path of a file with `user:password`, for the two digests
    ca: str = ""  # path of the certificates (PEM) of the authorities that sign the servers'; with it, TLS is spoken
    certificate: str = ""  # path of this process's own certificate (PEM), if the servers want one
    key: str = ""  # path of its key; empty if it is in the same file
    # `open`, `creator`, or empty for `creator` as soon as this process logs in. Who else may read follows `creator`, as
    # `creator,scheme:id,scheme:id`
    acl: str = ""

    @property
    def logs_in(self) -> bool:
        """Whether this process logs in to ZooKeeper."""
        return self.auth != NONE or bool(self.certificate)

    @property
    def closed(self) -> bool:
        """Whether only their creator may change the nodes that this process makes."""
        return self._acl[0] == CREATOR or (not self.acl and self.logs_in)

    def check(self) -> None:
        """Raise Invalid, with one sentence on what to do, unless these go together."""
        if self.auth not in (NONE, DIGEST, SASL_DIGEST, KERBEROS):
            raise Invalid(f"zookeeper_auth is {self.auth!r}: it must be 'none', 'digest', 'sasl-digest' or 'kerberos'.")
        if self._acl[0] not in ("", OPEN, CREATOR) or (self._acl[1:] and self._acl[0] != CREATOR):
            raise Invalid(f"zookeeper_acl is {self.acl!r}: it must be 'open', 'creator', or 'creator,scheme:id'.")
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

    @property
    def _acl(self) -> list[str]:
        return [each.strip() for each in self.acl.split(",")]

    def reader_ids(self) -> list[tuple[str, str]]:
        """Return scheme and id of each reader."""
        return [(scheme, who) for scheme, _, who in (each.partition(":") for each in self._acl[1:])]

    def _check_acl(self) -> None:
        if self._acl[0] == CREATOR and not self.logs_in:
            raise Invalid(
                "zookeeper_acl is 'creator' and ZooKeeper is not told who creates: "
                "set zookeeper_auth, or zookeeper_tls_certificate, or leave zookeeper_acl out."
            )
        for each in self._acl[1:]:
            if not _READER.fullmatch(each):
                raise Invalid(f"zookeeper_acl has {each!r}: write scheme:id, such as sasl:reports or world:anyone.")

    def _check_libraries(self) -> None:
        for library in _LIBRARIES.get(self.auth, ()):
            if importlib.util.find_spec(library) is None:
                raise Invalid(f"zookeeper_auth {self.auth!r} needs more libraries: pip install 'hybrid-ha[kerberos]'.")


def read_credentials(path: str) -> tuple[str, str]:
    """Return user and password of a file; CredentialsError if it cannot be read, or has another form."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise CredentialsError(f"zookeeper_credentials: {path} cannot be read ({reason}).") from error
    user, colon, password = text.partition(":")
    if not user or not colon or not password or "\n" in text:
        raise CredentialsError(f"zookeeper_credentials: {path} must have one line, user:password.")
    return user, password
