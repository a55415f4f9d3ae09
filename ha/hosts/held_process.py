"""A process that is waited for, or killed, and never taken for another one that has got its number.

That is what a pidfd is for. Where the kernel has none (before 5.3, as that of RHEL 8; gVisor; older profiles of
containers), a thread looks for the process some times a second, and knows it by its beginning.

This module uses the standard library alone: the guard imports it, and stays small.
"""

import errno
import os
import select
import signal
import threading
from contextlib import suppress
from pathlib import Path

REFUSALS = (errno.ENOSYS, errno.EPERM)
LOOK_MS = 50
PROC = Path("/proc")


def ending_of(pid: int) -> int:
    """Return a descriptor that becomes readable when a process has ended; ProcessLookupError if there is none."""
    if (descriptor := _pidfd(pid)) is not None:
        return descriptor
    began = _began(pid)
    seen, told = os.pipe()
    threading.Thread(target=_look, args=(pid, began, told), name="ha-ending", daemon=True).start()
    return seen


class HeldProcess:
    """A process that may be killed later, if it is still the same one."""

    def __init__(self, pid: int) -> None:
        """Hold a process; OSError if there is none."""
        self._pid, self._descriptor = pid, _pidfd(pid)
        self._began = "" if self._descriptor is not None else _began(pid)

    def kill(self) -> None:
        """Kill it; OSError if it has ended, or may not be killed."""
        if self._descriptor is not None:
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        elif _began(self._pid) == self._began:
            os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)


def _pidfd(pid: int) -> int | None:
    """Return a pidfd; None if this kernel, or what is before it, has none."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        return None


def _began(pid: int) -> str:
    """Return when a process began, in ticks of the kernel; ProcessLookupError if it has ended."""
    with suppress(FileNotFoundError):
        fields = (PROC / f"{pid}" / "stat").read_text(errors="replace").rpartition(")")[2].split()
        if fields[0] not in "ZX":
            return fields[19]
    raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))


def _look(pid: int, began: str, told: int) -> None:
    """Close the pipe once the process has ended; leave as well once nobody waits for it any more."""
    reader = select.poll()
    reader.register(told, 0)
    with suppress(ProcessLookupError):
        while not reader.poll(LOOK_MS) and _began(pid) == began:
            pass
    os.close(told)
