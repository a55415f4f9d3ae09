"""Processes that outlive the command that started them, and that are never mistaken for others.

A pid alone is not a name: the kernel uses it again. A pid *with its start time* is one, within one boot of the machine;
so every look and every signal checks both, and signals go through a pidfd, which cannot change hands in between.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

Condition = Literal["up", "paused", "down"]


class Identity(msgspec.Struct, frozen=True):
    """One process of this boot of the machine."""

    pid: int
    started: int  # in kernel clock ticks since boot (field 22 of /proc/<pid>/stat)
    boot: str  # the boot's own id


def spawn(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Identity:
    """Start a process in a session of its own, its output appended to a file."""
    # ``subprocess`` would insist on keeping watch over it; this process is meant to survive its parent.
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        pid = os.posix_spawn(
            command[0],
            list(command),
            dict(environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, descriptor, 1),
                (os.POSIX_SPAWN_DUP2, descriptor, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        )
    finally:
        os.close(descriptor)
    # Our own child cannot vanish before we reap it, so its entry is there even if it has died already.
    stat = _stat(pid)
    return Identity(pid=pid, started=stat[1] if stat else 0, boot=boot_id())


def condition(identity: Identity | None) -> Condition:
    """Return whether that very process is up, stopped by SIGSTOP, or gone."""
    letter = _letter(identity)
    if identity is None or not letter:
        return "down"
    if letter in "ZX":
        with contextlib.suppress(ChildProcessError):
            os.waitpid(identity.pid, os.WNOHANG)  # if it is our own child, only we can reap it
        return "down"
    return "paused" if letter in "Tt" else "up"


def send(identity: Identity | None, number: signal.Signals) -> bool:
    """Send a signal to that very process; return whether it was still there."""
    with _pidfd(identity) as descriptor:
        if descriptor is None or condition(identity) == "down":
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        return True


def wait_gone(identity: Identity | None, timeout_s: float) -> bool:
    """Wait until that very process has ended with all its threads, and so has let go its ports; return whether."""
    with _pidfd(identity) as descriptor:
        if descriptor is not None:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)  # a pidfd becomes readable when its process ends
            poll.poll(timeout_s * 1000)
    return condition(identity) == "down"


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@contextlib.contextmanager
def _pidfd(identity: Identity | None) -> Iterator[int | None]:
    """Hold that very process by a descriptor; None if it has no entry any more."""
    descriptor = None
    if identity is not None:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(identity.pid)
    try:
        # Look only after opening: what the descriptor holds now is what it will always hold.
        yield descriptor if _letter(identity) else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _letter(identity: Identity | None) -> str:
    """Return the state of that very process, also if only its last threads run; empty if it has no entry any more."""
    stat = _stat(identity.pid) if identity is not None and identity.boot == boot_id() else None
    return stat[0] if identity is not None and stat is not None and stat[1] == identity.started else ""


def _stat(pid: int) -> tuple[str, int] | None:
    """Return a process's state letter and start time in clock ticks; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])
