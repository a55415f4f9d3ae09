"""The guard, on a host that has no process, thread or descriptor left for a while."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.program.deadline_file import DeadlineWriter
from store.clock import now
from tests.limits import HANGS_S, killed

pytestmark = pytest.mark.programs


@pytest.fixture
def belief(tmp_path: Path) -> Iterator[DeadlineWriter]:
    made = DeadlineWriter(tmp_path / "belief")
    made.write(now() + HANGS_S, now() + HANGS_S)
    yield made
    made.close()


NO_PROCESS = """
import errno, subprocess, sys
from ha.sidecar.command import guard
guard.LACK_PAUSE_S, guard.LACK_S, times = 0.01, float(sys.argv.pop(1)), int(sys.argv.pop(1))
start = subprocess.Popen
def begin(*given, **named):
    global times
    times -= 1
    if times >= 0:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
    return start(*given, **named)
subprocess.Popen = begin
sys.exit(guard.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("within", "times", "stays", "code"), [(60.0, 3, True, 7), (0.0, 3, True, 127), (60.0, 999, False, 127)]
)
def test_a_command_that_the_host_has_no_process_for_is_begun_later(
    belief: DeadlineWriter, within: float, times: int, code: int, *, stays: bool
) -> None:
    """Within a time, and as long as the sidecar is there."""
    command = ["--", sys.executable, "-c", "raise SystemExit(7)"]
    guard = [sys.executable, "-c", NO_PROCESS, f"{within}", f"{times}", f"{belief.path}", *command]
    stdin = subprocess.PIPE if stays else subprocess.DEVNULL
    with killed(subprocess.Popen(guard, stdin=stdin, stderr=subprocess.PIPE, text=True)) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        assert ("cannot be started: Resource temporarily unavailable." in said) is (code == 127)
        assert said.count("cannot be started yet: Resource temporarily unavailable. This host lacks") == (
            stays and within > 0
        )
        assert process.wait(HANGS_S) == code


NO_THREAD = """
import sys, threading
start, refused = threading.Thread.start, [1, 2, 3, 4]
def begin(thread):
    if refused:
        refused.pop()
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = begin
from ha.sidecar.command.guard import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_guard_without_a_free_thread_passes_all_on_once_there_is_one(belief: DeadlineWriter, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('x' * 200000, flush=True)"]  # more than a pipe holds
    guard = [sys.executable, "-c", NO_THREAD, f"{belief.path}", f"output={tmp_path / 'log'}", "--", *command]
    with killed(subprocess.Popen(guard, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        assert len(process.stdout.read()) == 200001
        assert process.wait(HANGS_S) == 0


NO_DESCRIPTOR = """
import errno, sys
from ha.sidecar.command import guard
guard.GROUP_GRACE_S, guard.LACK_PAUSE_S, times, told = 0.1, 0.01, int(sys.argv.pop(1)), guard._told_left
def tell():
    global times
    times -= 1
    if times >= 0:
        raise OSError(errno.EMFILE, "Too many open files")
    return told()
guard._told_left = tell
sys.exit(guard.main(sys.argv[1:]))
"""


def test_what_a_command_has_left_is_told_once_there_is_a_descriptor_to_look(belief: DeadlineWriter) -> None:
    left = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])"
    guard = [sys.executable, "-c", NO_DESCRIPTOR, "3", f"{belief.path}", "--", sys.executable, "-c", left]
    with killed(subprocess.Popen(guard, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)) as process:
        assert process.stderr is not None
        assert "it left programs behind" in process.stderr.read()
        assert process.wait(HANGS_S) == 0


def test_a_guard_that_fails_ends_as_one_that_was_killed(tmp_path: Path) -> None:
    """So its sidecar ends what it has left."""
    damaged = tmp_path / "belief"
    damaged.mkdir()
    (tmp_path / "sitecustomize.py").write_text("import ctypes\nctypes.CDLL = None\n")
    guard = [sys.executable, "-m", "ha.sidecar.command.guard", f"{damaged}", "--", "true"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}"}
    done = subprocess.run(guard, stderr=subprocess.PIPE, text=True, check=False, timeout=HANGS_S, env=environment)
    assert (done.returncode, "TypeError" in done.stderr) == (-signal.SIGKILL, True)
