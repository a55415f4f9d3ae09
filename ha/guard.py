"""The guard: a small process between the sidecar and its command, so that the command never outlives its leadership.

    sidecar --starts--> guard --starts--> command, in a process group of its own

The command's whole group is killed when the sidecar asks for it, when the sidecar is gone (its end of the pipe closes),
or when the belief that the sidecar shares runs out: that is how a frozen sidecar's driver stops in time. If the guard
itself is killed, the kernel kills the command (parent-death signal). Only the standard library, so that it is small.

The environment's HA_SPARK_JVM names a file that says, once it is there, which process is the command's JVM: when that
has ended the command is killed, for without it a Python driver goes on for a while as if nothing had happened.

A command that warms up before anything is granted is free of the belief until its grant's file is there.

Run as ``python -m ha.guard BELIEF [GRANT] -- COMMAND...``; reads letters from standard input: ``T`` asks the group
to end, ``K`` kills it. Exits as the command does, with 128 + signal if a signal ended it, with 127 if it cannot be
started.
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

from ha.belief import BeliefReader
from store.clock import now

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GROUP_GRACE = 5.0
"""Seconds that the rest of the group has to end by itself after the command has."""

LONGEST_NAP = 0.25
"""Seconds between two looks at the belief: a renewal that comes meanwhile must be seen before the old end."""


def main(arguments: list[str]) -> int:
    """Run the command and return what to exit with."""
    end = arguments.index("--")
    belief = BeliefReader(Path(arguments[0]))
    grant = Path(arguments[1]) if end > 1 else None
    command = arguments[end + 1 :]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the sidecar decides; a closed terminal reaches us through it
    # Orphans of the command come to us and are reaped: in a container there may be nobody else who does, and a group
    # of which only zombies are left looks like one that is alive.
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
        nap = min(LONGEST_NAP, max(0.0, belief.read()[1] - now())) if granted else LONGEST_NAP
        ready = select.select([ended, control, *([jvm] if jvm >= 0 else [])], [], [], nap)[0]
        _reap(child)
        if ended in ready:
            return _finish(child, belief)
        letter = os.read(control, 1) if control in ready else b""
        if letter == b"T":
            _signal(child, signal.SIGTERM)
        elif control in ready:
            _signal(child, signal.SIGKILL)
            return _finish(child, belief)
        elif jvm in ready:
            sys.stderr.write("ha: the command's JVM has ended: the command is killed.\n")
            _signal(child, signal.SIGKILL)
            return _finish(child, belief)
        elif granted and now() >= belief.read()[1]:
            sys.stderr.write("ha: the leadership is over and the sidecar says nothing: the command is killed.\n")
            _signal(child, signal.SIGKILL)
            return _finish(child, belief)


def _prepare(guard: int) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(128 + signal.SIGKILL)  # it was killed before that could be asked for
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _ending_of(file: Path) -> int:
    """A descriptor that becomes readable when the process has ended that the file names; -1 if there is no file yet."""
    try:
        return os.pidfd_open(int(file.read_text()))
    except FileNotFoundError:
        return -1
    except ProcessLookupError:
        return os.open(os.devnull, os.O_RDONLY)  # readable at once: it has ended before we could look


def _signal(child: "subprocess.Popen[bytes]", number: int) -> bool:
    """Signal the group; returns whether there is any of it left."""
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return False
    return True


def _reap(child: "subprocess.Popen[bytes]") -> None:
    """Take leave of what has ended, but for the command itself."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid == child.pid:
            return
        os.waitpid(found.si_pid, 0)


def _finish(child: "subprocess.Popen[bytes]", belief: BeliefReader) -> int:
    """Leave nothing of the group behind, and say how the command ended."""
    status = child.wait()
    # A driver's JVM ends a moment after it and cleans up; it may, for as long as nobody else can lead.
    end = now() + GROUP_GRACE
    _reap(child)
    while _signal(child, 0) and now() < min(end, belief.read()[1]):
        time.sleep(0.02)
        _reap(child)
    _signal(child, signal.SIGKILL)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
