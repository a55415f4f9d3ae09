"""Orders: what the guard of a command is told, by its sidecar, or by the successor of one that was killed.

The sidecar's letters come through a pipe. When that closes, and the guard was given a door, it waits there for the
sidecar's successor. That one connects, is told who the guard is, gets the liveness listener, and sends the letters from
then on. In return it gets the exit code, because it is not the guard's parent.
"""

import os
import select
import signal
import socket
from contextlib import suppress

from store.clock import now

NEVER = float("inf")

TERMINATE, KILL = b"T", b"K"

# Begins the line that a successor gets, before the guard's process id; numbers the protocol.
GREETING = "hybrid-ha-guard 1"


class Orders:
    """The guard's end."""

    def __init__(self, pipe: int, *, door: int = -1, within: float = 0.0, listener: int = -1) -> None:
        """Begin with a sidecar, whose letters come from ``pipe``."""
        # At the listening socket `door` a successor is awaited for so many seconds; it gets the liveness listener. Both
        # are descriptors; -1 for none.
        self._source, self._listener, self._within = pipe, listener, within
        self._door = socket.socket(fileno=door) if door >= 0 else None
        if self._door is not None:
            self._door.setblocking(False)
        self._connection: socket.socket | None = None
        self._asked_to_end = False
        self.until = NEVER  # until when a successor is awaited, in seconds of the clock; NEVER while there is a sidecar

    def fileno(self) -> int:
        """Descriptor that becomes readable when :meth:`take` has something to do."""
        return self._door.fileno() if self._source < 0 and self._door is not None else self._source

    def take(self, *, granted: bool) -> bytes:
        """Take what has come: a letter, or nothing. Only a sidecar that leads may have a successor."""
        if self._source < 0:
            self._welcome()
            return b""
        try:
            letter = os.read(self._source, 1)
        except OSError:
            letter = b""
        if letter:
            self._asked_to_end |= letter == TERMINATE
            return letter
        if self._door is None or not granted:
            return KILL
        if self._connection is not None:
            self._connection.close()
        self._source, self._connection, self.until = -1, None, now() + self._within
        return b""

    def report(self, code: int, *, granted: bool, deadline: float) -> None:
        """Tell a successor how the command has ended; if the sidecar is gone, wait for one, until the deadline."""
        # The guard stays until it was heard: its lock keeps the directory from others until the successor has its own.
        if self._door is None or not granted:
            return
        if self._source >= 0 and self._readable(0.0):
            self.take(granted=True)  # the sidecar may be gone since the command has ended
        while self._source < 0:
            if not self._readable(min(self.until, deadline) - now()):
                return
            self._welcome()
        if self._connection is not None:
            if code == 0 and self._asked_to_end:
                code = 128 + signal.SIGTERM  # as GuardedCommand.wait says it: its work is not finished
            with suppress(OSError):  # it is gone as well
                self._connection.send(bytes([code]))
                self._connection.settimeout(max(0.0, deadline - now()))
                self._connection.recv(1)

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self], [], [], max(0.0, seconds))[0])

    def _welcome(self) -> None:
        assert self._door is not None, "who waits has a door"
        greeting = f"{GREETING} {os.getpid()}\n".encode()
        try:
            connection, _ = self._door.accept()
        except OSError:
            return
        try:
            socket.send_fds(connection, [greeting], [self._listener] if self._listener >= 0 else [])
        except OSError:
            connection.close()  # it is gone already: another one may come
            return
        self._source, self._connection, self.until = connection.fileno(), connection, NEVER
