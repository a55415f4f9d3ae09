"""A test that passes, and leaves a program behind in a session of its own."""

import subprocess
import sys


def test_leaves_a_program() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100000)"], start_new_session=True)
