"""A test that passes, and leaves a program behind in a session of its own."""

import subprocess
import sys

LEFT: list[subprocess.Popen[bytes]] = []


def test_leaves_a_program() -> None:
    LEFT.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100000)"], start_new_session=True))
