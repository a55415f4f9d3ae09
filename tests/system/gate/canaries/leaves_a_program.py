"""A test that passes, and leaves a program behind in a session of its own."""

import os
import subprocess
import sys
from pathlib import Path

LEFT: list[subprocess.Popen[bytes]] = []


def test_leaves_a_program() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(100000)"]
    LEFT.append(subprocess.Popen(command, start_new_session=True))
    Path(os.environ["LEFT"]).write_text(str(LEFT[0].pid))
