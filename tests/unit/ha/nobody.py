"""Another user of this host: code that is run with no more rights than anybody has."""

import os
import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

_PREFACE = "import encodings.idna, os, socket, sys; os.setgroups([]); os.setgid({0}); os.setuid({0})\n"


def as_nobody(source: str, *arguments: object) -> str:
    command = [sys.executable, "-c", _PREFACE.format(NOBODY) + source, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
