"""The security of calls: what a caller trusts, and what it shows to the job master. Credentials lie in files.

A token is sent over TLS only, to a server with a certificate that the caller trusts: a forged address gets nothing.
"""

import ssl
from functools import lru_cache
from pathlib import Path

import msgspec

from ha.config.settings import Settings
from ha.jobmaster.call_errors import NotExecuted
from ha.listening.tls import ChangingFiles

MAX_TOKEN_BYTES = 10_000


class Security(msgspec.Struct, frozen=True):
    """The security of a process's calls; see the settings ``jobmaster_...``.

    Attributes:
        ca: file with the authorities of job masters; empty for those of the system.
        token: file with the token; empty for none.
        certificate: file with the caller's own certificate; empty for none.
        key: file with its key; empty if it is in the same file.
    """

    ca: str = ""
    token: str = ""
    certificate: str = ""
    key: str = ""

    def context(self, host: str, *, tls: bool) -> ssl.SSLContext | None:
        """Return the context for a call of this host; None for one without TLS.

        ``NotExecuted`` if TLS is wanted and the address has none, or a file cannot be read.
        """
        if not tls and (self.ca or self.token):
            raise NotExecuted(f"{host} is published without https://, and jobmaster_ca or jobmaster_token is set")
        try:
            return _contexts(self.ca, self.certificate, self.key).value() if tls else None
        except (OSError, ValueError) as error:
            raise NotExecuted(f"jobmaster_ca or jobmaster_certificate cannot be read ({error})") from error

    def headers(self) -> dict[str, str]:
        """Return the headers that show the token, if there is one; ``NotExecuted`` if its file cannot be used."""
        try:
            return {"Authorization": f"Bearer {_token(self.token).value()}"} if self.token else {}
        except (OSError, ValueError) as error:
            raise NotExecuted(f"jobmaster_token cannot be read ({error})") from error


def security_of(settings: Settings | None) -> Security:
    """Return the security that the settings describe."""
    if settings is None:
        return Security()
    return Security(
        settings.http.jobmaster_ca,
        settings.http.jobmaster_token,
        settings.http.jobmaster_certificate,
        settings.http.jobmaster_key,
    )


@lru_cache(maxsize=16)
def _contexts(ca: str, certificate: str, key: str) -> ChangingFiles[ssl.SSLContext]:
    def load() -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=ca or None)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        if certificate:
            made.load_cert_chain(certificate, key or None, password="")  # an empty one: it must not ask a terminal
        return made

    return ChangingFiles(tuple(each for each in (ca, certificate, key) if each), load)


@lru_cache(maxsize=16)
def _token(path: str) -> ChangingFiles[str]:
    def load() -> str:
        with Path(path).open("rb") as file:
            found = file.read(MAX_TOKEN_BYTES).decode("ascii", "replace").strip()
        if not found or not found.isascii() or not found.isprintable() or " " in found:
            raise ValueError("it must have one line with one token")
        return found

    return ChangingFiles((path,), load)
