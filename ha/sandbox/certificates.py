"""Certificates of the sandbox: an authority of its own, and what it signs, made by the program ``openssl``."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ha.sandbox.polling import SandboxError

_TIMEOUT_S = 30
_DAYS = "30"
_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """One key with its certificate.

    Attributes:
        certificate: a file in PEM.
        key: likewise, without a password.
    """

    certificate: Path
    key: Path

    @property
    def both(self) -> Path:
        """Both in one file in PEM, as ZooKeeper takes them for a key store."""
        return self.key.with_suffix(".pem")


def make_authority(folder: Path) -> Certificate:
    """Make an authority that signs certificates.

    Raises:
        SandboxError: ``openssl`` is missing or failed.
    """
    authority = _files(folder, "authority")
    _new_key(authority, "/CN=Hybrid HA sandbox", "-x509", "-days", _DAYS, "-out", str(authority.certificate))
    return authority


def sign(authority: Certificate, folder: Path, name: str) -> Certificate:
    """Make a certificate for this host that the authority has signed, for a server or a client of that name.

    Raises:
        SandboxError: ``openssl`` is missing or failed.
    """
    made = _files(folder, name)
    request = made.key.with_suffix(".request")
    _new_key(made, f"/CN={name}", "-out", str(request))
    names = made.key.with_suffix(".names")
    names.write_text(_NAMES, encoding="ascii")
    _openssl(
        *("x509", "-req", "-in", str(request), "-days", _DAYS, "-CAcreateserial", "-extfile", str(names)),
        *("-CA", str(authority.certificate), "-CAkey", str(authority.key), "-out", str(made.certificate)),
    )
    made.both.touch(mode=0o600)
    made.both.write_bytes(made.key.read_bytes() + made.certificate.read_bytes())
    return made


def key_store(certificate: Certificate, password: str) -> Path:
    """Put a certificate and its key into a key store of Java's.

    Raises:
        SandboxError: ``openssl`` is missing or failed.
    """
    store = certificate.key.with_suffix(".p12")
    _openssl(
        *("pkcs12", "-export", "-in", str(certificate.certificate), "-inkey", str(certificate.key), "-name", "server"),
        *("-passout", f"pass:{password}", "-out", str(store)),
    )
    return store


def _files(folder: Path, name: str) -> Certificate:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Certificate(folder / f"{name}.crt", folder / f"{name}.key")


def _new_key(made: Certificate, subject: str, *arguments: str) -> None:
    _openssl(
        *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", subject, "-keyout", str(made.key), *arguments),
    )


def _openssl(*arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise SandboxError("There is no openssl on the search path: install it (Debian: apt-get install openssl).")
    try:
        ended = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"openssl does not run: {error}.") from error
    if ended.returncode != 0:
        raise SandboxError(f"openssl {arguments[0]} failed: {ended.stderr.strip()[-300:]}")
