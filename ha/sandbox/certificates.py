"""Certificates of the sandbox: an authority of its own, and what it signs, made by the program ``openssl``."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from ha.sandbox.polling import SandboxError, run_well

_TIMEOUT_S = 30
_DAYS = "30"
_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """One key, without a password, with its certificate; both are files in PEM."""

    certificate: Path
    key: Path

    @property
    def both(self) -> Path:
        """Both in one file in PEM, as ZooKeeper takes them for a key store."""
        return self.key.with_suffix(".pem")


def make_authority(folder: Path) -> Certificate:
    """Make an authority that signs certificates."""
    authority = _files(folder, "authority")
    _new_key(authority, "/CN=Hybrid HA sandbox", "-x509", "-days", _DAYS, "-out", str(authority.certificate))
    return authority


def sign(authority: Certificate, folder: Path, name: str) -> Certificate:
    """Make a certificate for this host that the authority has signed, for a server or a client of that name."""
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
    """Put a certificate and its key into a key store of Java's."""
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
    run_well(f"openssl {arguments[0]}", [program, *arguments], _TIMEOUT_S)
