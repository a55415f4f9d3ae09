"""The guard: a small process between the sidecar and its command, which ends the command in time in every case.

    sidecar --starts--> guard --starts--> command, in a process group of its own

The guard kills the command's whole process group when

- the sidecar asks for it;
- the sidecar is gone: its end of the pipe closes;
- the deadline in the sidecar's deadline file passes, which ends the driver of a frozen sidecar in time. The deadline of
  a warm command counts only from when its grant file exists;
- the command's JVM has ended. The variable HA_SPARK_JVM names a file that will contain its process id. Without its JVM
  a Python driver would go on for a while as if nothing had happened.

If the guard itself is killed, the kernel kills the command (parent-death signal). The guard imports little besides the
standard library, so that it stays small.

Run it as ``python -m ha.sidecar.guard DEADLINE [GRANT] -- COMMAND...``. It reads letters from standard input: ``T``
asks the group to end, ``K`` kills it. Its exit code is the command's, 128 + signal if a signal ended the command, and
127 if the command cannot be started.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from ha.leadership.deadline_file import DeadlineReader
from store.clock import now

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GROUP_GRACE_S = 5.0
"""Once the command has ended, the rest of its group has this long to end by itself, unless SIGKILL ended it."""

LONGEST_PAUSE_S = 0.25
"""The guard reads the deadline file at least this often, to see a later deadline before the old one passes."""

JVM_ENDED = ".jvm-ended"
"""Ends the name of the file, beside the deadline's, by which the guard tells that the command's JVM had ended first."""


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    end = arguments.index("--")
    deadline = DeadlineReader(Path(arguments[0]))
    grant = Path(arguments[1]) if end > 1 else None
    command = arguments[end + 1 :]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the sidecar decides, also when a terminal is closed
    # This process adopts and reaps the command's orphans. In a container there may be no other process that does, and
    # a group in which only zombies are left looks alive.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        prepare = partial(_prepare, os.getpid())
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=prepare)  # noqa: PLW1509
    except OSError as error:
        sys.stderr.write(f"ha: {command[0]} cannot be started: {error.strerror}.\n")
        return 127
    ended = os.pidfd_open(child.pid)
    control = sys.stdin.fileno()
    jvm, jvm_file = -1, os.environ.get("HA_SPARK_JVM")
    granted = False
    while True:
        if jvm_file and jvm < 0:
            jvm = _ending_of(Path(jvm_file))
        granted = granted or grant is None or grant.exists()
        nap = min(LONGEST_PAUSE_S, max(0.0, deadline.read()[1] - now())) if granted else LONGEST_PAUSE_S
        ready = select.select([ended, control, *([jvm] if jvm >= 0 else [])], [], [], nap)[0]
        _reap(child)
        if ended in ready:
            return _finish(child, deadline)
        letter = os.read(control, 1) if control in ready else b""
        if letter == b"T":
            _signal(child, signal.SIGTERM)
        elif control in ready:
            _signal(child, signal.SIGKILL)
            return _finish(child, deadline)
        elif jvm in ready:
            sys.stderr.write("ha: the command's JVM has ended: the command is killed.\n")
            Path(f"{arguments[0]}{JVM_ENDED}").touch()
            _signal(child, signal.SIGKILL)
            return _finish(child, deadline)
        elif granted and now() >= deadline.read()[1]:
            sys.stderr.write("ha: the leadership is over and the sidecar does not react: the command is killed.\n")
            _signal(child, signal.SIGKILL)
            return _finish(child, deadline)


def _prepare(guard: int) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(128 + signal.SIGKILL)  # the guard was killed before this process asked for the signal
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _ending_of(file: Path) -> int:
    """Return a descriptor that becomes readable when the process in the file has ended; -1 if there is no file yet."""
    try:
        return os.pidfd_open(int(file.read_text()))
    except FileNotFoundError:
        return -1
    except ProcessLookupError:
        return os.open(os.devnull, os.O_RDONLY)  # readable at once, because the process has ended already


def _signal(child: "subprocess.Popen[bytes]", number: int) -> bool:
    """Send a signal to the group; returns whether any process of it is left."""
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return False
    return True


def _reap(child: "subprocess.Popen[bytes]") -> None:
    """Reap all children that have ended, except the command itself."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid == child.pid:
            return
        os.waitpid(found.si_pid, 0)


def _finish(child: "subprocess.Popen[bytes]", deadline: DeadlineReader) -> int:
    """End the rest of the group; returns the exit code of the command."""
    status = child.wait()
    # A driver's JVM ends a moment later and cleans up. It has time for that while no other contender can lead.
    # Not so if the driver was killed: waiting for that would be half a second of the takeover.
    if status == -signal.SIGKILL:
        _signal(child, signal.SIGKILL)
    end = now() + GROUP_GRACE_S
    _reap(child)
    while _signal(child, 0) and now() < min(end, deadline.read()[1]):
        time.sleep(0.02)
        _reap(child)
    _signal(child, signal.SIGKILL)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # the sidecar waits for this end to give the lease back, and Python's own takes milliseconds
