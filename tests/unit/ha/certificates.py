"""Certificates for tests: each is its own authority, and is good for this host."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


def make_certificate(folder: Path, name: str) -> Pair:
    made = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    program = shutil.which("openssl")
    assert program, "There is no openssl on the search path: install it."
    subprocess.run(
        [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", _NAMES, "-keyout", str(made.key), "-out", str(made.certificate)],
        check=True,
        capture_output=True,
        timeout=120,
    )  # fmt: skip
    return made
