"""The guard: a small process between the sidecar and its command, which ends the command in time in every case.

    sidecar --starts--> guard --starts--> command, in a process group of its own

The guard kills the command, and all that it has started in whatever session, when

- the sidecar asks for it;
- the sidecar is gone: its end of the pipe closes. With a door (ha/sidecar/command/guard_orders.py) a successor has some
  seconds to come, within the deadline, if the command was granted the job;
- the deadline in the sidecar's deadline file passes, which ends the driver of a frozen sidecar in time. The deadline of
  a warm command counts only from when its grant file exists;
- the JVM of a Python driver has ended, and the driver has not (:mod:`ha.sidecar.command.jvm_watch`): it would run on
  for a while as if nothing had happened. Or the command has started Spark without the settings or the hook of
  ``--spark``.

After the command's own end the rest of its process group has some seconds; if it has ended with 0, so has all that it
has started, and what works on is told: it is no success to have put a program into the background. If
the guard itself is killed, the kernel kills the command (parent-death signal), and the sidecar or the next one kills
the rest (:mod:`ha.sidecar.command.offspring`). The guard imports little besides the standard library, to stay small.

Run it as ``python -m ha.sidecar.command.guard DEADLINE [OPTION=VALUE...] -- COMMAND...``; the options are ``grant``, a
path, ``output``, the log that :class:`ha.program.output_log.Tee` writes, and ``door``, ``within`` and ``listener`` as
:class:`ha.sidecar.command.guard_orders.Orders` describes them. It reads letters from standard input: ``T`` asks the
group to end, ``K`` kills it. Its exit code is the command's, 128 + signal if a signal ended the command, and 127 if the
command cannot be started.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from ha.hosts import inherited
from ha.hosts.held_process import ending_of
from ha.hosts.lacks import lacks, patiently
from ha.program.deadline_file import DeadlineReader
from ha.program.output_log import Tee
from ha.sidecar.command.guard_orders import NEVER, TERMINATE, Orders
from ha.sidecar.command.jvm_watch import JvmWatch, tell_astray
from ha.sidecar.command.memory import descendants
from ha.sidecar.command.offspring import end_all, tell_left_behind
from store.clock import now

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GROUP_GRACE_S = 5.0  # for the rest of the group once the command has ended, unless SIGKILL ended it
LACK_S, LACK_PAUSE_S = 30.0, 0.5  # for which a start is tried again, and the time between two tries
LONGEST_PAUSE_S = 0.25  # between two reads of the deadline file, to see a later deadline before the old one passes

# Ends the name of the file beside the deadline's by which the guard says that the JVM had ended first.
JVM_ENDED = ".jvm-ended"


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    inherited.settle()  # a guard that is not told how its command has ended would say that all went well
    end = arguments.index("--")
    options = dict(each.split("=", 1) for each in arguments[1:end])
    command = arguments[end + 1 :]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # the sidecar decides, also when a terminal is closed
    # This process adopts and reaps the command's orphans. In a container there may be no other process that does, and
    # a group in which only zombies are left looks alive.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        watch = _Watch(Path(arguments[0]), options)
        prepare = partial(die_with, os.getpid())
        tee = Tee(Path(options["output"])) if "output" in options else None
        child = _begin(
            lambda: subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=tee.output if tee else None,
                stderr=tee.error if tee else None,
                process_group=0,
                preexec_fn=prepare,  # noqa: PLW1509  # no thread is there yet
            ),
            lambda said: _say(said, tee),
        )
    except OSError as error:
        sys.stderr.write(f"ha: {error.filename or command[0]} cannot be started: {error.strerror}.\n")
        return 127
    if tee is not None:
        tee.start()
    if (said := watch.until_the_end(child, tee)) is not None:
        _signal(child, signal.SIGKILL)
        _say(said, tee)
    code, said = _finish(child, watch.deadline)
    if said:
        _say(said, tee)
    if tee is not None:
        tee.finish()
    watch.orders.report(code, granted=watch.granted, deadline=watch.deadline.read()[1])
    return code


class _Watch:
    """Sees all that may end the command, beside itself."""

    def __init__(self, deadline: Path, options: Mapping[str, str]) -> None:
        self.deadline = DeadlineReader(deadline)
        self._grant = Path(options["grant"]) if "grant" in options else None
        door, within, listener = (float(options.get(each, -1)) for each in ("door", "within", "listener"))
        self.orders = Orders(sys.stdin.fileno(), door=int(door), within=within, listener=int(listener))
        self._jvm = JvmWatch(file) if (file := os.environ.get("HA_SPARK_JVM")) else None
        self._jvm_ended = Path(f"{deadline}{JVM_ENDED}")
        self._granted = False

    @property
    def granted(self) -> bool:
        """Whether the command was granted the job."""
        self._granted = self._granted or self._grant is None or self._grant.exists()
        return self._granted

    def until_the_end(self, child: "subprocess.Popen[bytes]", tee: Tee | None) -> str | None:
        """Return None when the command has ended, and a text to be shown, or an empty one, when it is to be killed."""
        ended = ending_of(child.pid)
        while True:
            jvm = self._jvm.ending() if self._jvm is not None else []
            nap = min(LONGEST_PAUSE_S, max(0.0, self._until() - now()))
            waits = [ended, self.orders.fileno()]
            ready = select.select([*waits, *jvm], [], [], nap)[0]
            _reap(child)
            if tee is not None:
                tee.begin()
            if ended in ready:
                return None
            letter = self.orders.take(granted=self.granted) if waits[1] in ready else b""
            if letter == TERMINATE:
                _signal(child, signal.SIGTERM)
            elif letter:
                return ""
            elif self._jvm is not None and set(jvm) & set(ready) and self._jvm.orphaned():
                with suppress(OSError):  # a disk that is full: its end is told as that by a signal
                    self._jvm_ended.touch()
                return "ha: the command's JVM has ended: the command is killed.\n"
            elif self._jvm is not None and (astray := self._jvm.astray()):
                return tell_astray(*astray)
            elif now() >= self._until():
                gone = self.orders.until <= now()
                why = (
                    "sidecar is gone and no other came" if gone else "leadership is over and the sidecar does not react"
                )
                return f"ha: the {why}: the command is killed.\n"

    def _until(self) -> float:
        return min(self.deadline.read()[1], self.orders.until) if self.granted else NEVER


def _begin(start: Callable[[], "subprocess.Popen[bytes]"], say: Callable[[str], object]) -> "subprocess.Popen[bytes]":
    """Start the command; tried again while the host lacks something, which is said, and nobody asks for the end."""
    end, said = now() + LACK_S, ""
    while True:
        try:
            return start()
        except OSError as error:
            if not lacks(error) or now() >= end or select.select([sys.stdin], [], [], LACK_PAUSE_S)[0]:
                raise
            if not said:
                said = f"ha: the command cannot be started yet: {error.strerror}. This host lacks something.\n"
                say(said)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, and let signals do what they usually do."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)  # the parent was killed before this process asked for the signal
    inherited.usual_signals()


def _signal(child: "subprocess.Popen[bytes]", number: int) -> bool:
    """Send a signal to the group; returns whether any process of it is left."""
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return False
    return True


def _reap(child: "subprocess.Popen[bytes]") -> bool:
    """Reap all children that have ended, except the command itself; returns whether there are others."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        if found is None or found.si_pid == child.pid:
            return True
        os.waitpid(found.si_pid, 0)


def _finish(child: "subprocess.Popen[bytes]", deadline: DeadlineReader) -> tuple[int, str]:
    """End what the command has started; returns its exit code, and what is to be said of those that worked on."""
    status = child.wait()
    # A driver's JVM ends a moment later and cleans up. It has time for that while no other contender can lead.
    # Not so if the driver was killed: waiting for that would be half a second of the takeover.
    if status == -signal.SIGKILL:
        _signal(child, signal.SIGKILL)
    end = now() + GROUP_GRACE_S
    there = _reap(child)
    while (_signal(child, 0) or (there and status == 0)) and now() < min(end, deadline.read()[1]):
        time.sleep(0.02)
        there = _reap(child)
    said = patiently(_told_left, LACK_PAUSE_S) if there and status == 0 else ""
    _signal(child, signal.SIGKILL)
    end_all(lambda: descendants(os.getpid()) if _reap(child) else [])
    return (status if status >= 0 else 128 - status), said


def _told_left() -> str:
    return tell_left_behind(os.getpid(), GROUP_GRACE_S)


def _say(said: str, tee: Tee | None) -> None:
    if tee is not None:
        tee.keep(said.encode())
    with suppress(OSError):  # its reader is gone, too
        sys.stderr.write(said)
        sys.stderr.flush()


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        os.kill(os.getpid(), signal.SIGKILL)  # the sidecar ends what a guard that was killed has left
        raise
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)  # the sidecar waits for this end to give the lease back, and Python's own takes milliseconds
