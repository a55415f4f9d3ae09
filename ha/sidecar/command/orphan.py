"""Orphan: the successor's end of a command whose sidecar is gone and whose guard waits; see `guard_orders.py`."""

import logging
import os
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

from ha.program.deadline_file import DeadlineReader
from ha.sidecar.command.guard_orders import GREETING, KILL, TERMINATE
from ha.sidecar.command.offspring import end_marked
from ha.sidecar.command.slot import Left
from store.clock import now

DEADLINE = "deadline"  # name of the deadline file among those that a sidecar shares with its command
LONGEST_GREETING = 100

KILLED_WITHIN_S = 5.0  # a guard that is told to kill its command ends sooner
TOGETHER_S = 0.5
"""An end with 0, or by TERM, is believed after this time. Who ends a whole service, as systemd does by default, tells
each of its processes, and the command may be the first to end: then it has neither finished nor failed."""

MARGIN_S = 0.5  # once the deadline has passed, the guard kills its command, and the connection ends within this time
_log = logging.getLogger("ha")


class Orphan:
    """One command, to be taken up; it can be used as a :class:`ha.sidecar.command.command.GuardedCommand`."""

    def __init__(self, left: Left, connection: socket.socket, pid: int, listener: int) -> None:
        """Use :func:`meet`."""
        # The guard, with this process id, obeys the connection from now on. The listener is the liveness listener's
        # descriptor, -1 for none; it is closed by the code that takes it.
        self.left, self.pid, self.listener = left, pid, listener
        self._connection = connection
        self._asked_to_end = threading.Event()

    def wait(self) -> int:
        """Wait until the command has ended; returns its exit code as :meth:`GuardedCommand.wait` does."""
        try:
            code = self._connection.recv(1)
        except OSError:
            code = b""
        self._connection.close()
        if not code:
            end_marked(Path(self.left.directory))
            return 128 + signal.SIGKILL  # the guard was killed, and the kernel has killed the command
        return told(code[0], self._asked_to_end)

    def terminate(self) -> None:
        """Send TERM to the command's whole process group."""
        self._asked_to_end.set()
        self._send(TERMINATE)

    def kill(self) -> None:
        """Kill the command's whole process group."""
        self._send(KILL)

    def end(self) -> None:
        """Kill it because it cannot be taken up, and wait until it is gone."""
        _end(self._connection)
        if self.listener >= 0:
            os.close(self.listener)

    def _send(self, letter: bytes) -> None:
        with suppress(OSError):  # the guard has ended, and the command with it
            self._connection.send(letter)


def told(code: int, asked: threading.Event) -> int:
    """Return 128 + TERM for an end that was asked for, and else the exit code, once that is known."""
    return 128 + signal.SIGTERM if code in (0, 128 + signal.SIGTERM) and asked.wait(TOGETHER_S) else code


def meet(left: Left | None, connection: socket.socket) -> Orphan | None:
    """Exchange greetings with the guard, until its deadline at most; if that fails, None: the command is gone."""
    handed: list[int] = []
    try:
        pid = _greeted(left, connection, handed)
    except OSError as error:
        _log.warning("A command whose sidecar is gone cannot be taken up: %s.", error.strerror or error)
        pid = 0
    if left is None or not pid or (left.contact is not None and not handed):
        for each in handed:
            os.close(each)
        _end(connection)
        return None
    connection.settimeout(None)
    return Orphan(left, connection, pid, handed[0] if handed else -1)


def _greeted(left: Left | None, connection: socket.socket, handed: list[int]) -> int:
    """Wait for the guard's greeting, and what it hands over; returns its process id, or 0 if it is none of ours."""
    if left is None:
        return 0
    until = DeadlineReader(Path(left.directory, DEADLINE)).read()[1]
    connection.settimeout(max(0.0, until - now()) + MARGIN_S)
    said, found, _, _ = socket.recv_fds(connection, LONGEST_GREETING, 1)
    handed += found
    greeting, _, pid = said.decode(errors="replace").strip().rpartition(" ")
    return int(pid) if greeting == GREETING and pid.isdecimal() else 0


def _end(connection: socket.socket) -> None:
    end = now() + KILLED_WITHIN_S
    with connection, suppress(OSError):  # it is gone already, or the guard does not end: the kernel has the last word
        connection.send(KILL)
        while now() < end:
            connection.settimeout(max(0.01, end - now()))
            if not connection.recv(LONGEST_GREETING):
                return
