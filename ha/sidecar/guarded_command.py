"""GuardedCommand: one run of a sidecar's command: the two processes that :mod:`ha.sidecar.guard` describes."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Door:
    """Where the successor of this process connects to the guard of the command.

    Attributes:
        descriptor: of a listening socket.
        within: seconds for which a successor is awaited.
    """

    descriptor: int
    within: float


class GuardedCommand:
    """One run of a command under a guard, which kills it when the leadership or the sidecar is gone."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        deadline: Path,
        held: Sequence[int] = (),
        grant: Path | None = None,
        place: Path | None = None,
        door: Door | None = None,
    ) -> None:
        """Start the guard, which starts the command.

        Args:
            command: program and arguments.
            environment: added to this process's own.
            deadline: the file of the :class:`ha.leadership.deadline_file.DeadlineWriter`.
            held: descriptors that the guard keeps open until the command's whole process group is gone.
            grant: the deadline counts from when this file exists; None if the job is granted already.
            place: the command's working directory; None for this process's own.
            door: where a successor of this process may take the command up; it gets the first of ``held``.
        """
        # -P: a directory called `ha` in the user's working directory must not be imported instead of this package.
        interpreter = [sys.executable, "-P", "-m", "ha.sidecar.guard"]
        options = [f"grant={grant}"] if grant else []
        if door is not None:
            options += [f"door={door.descriptor}", f"within={door.within}"]
            options += [f"listener={held[0]}"] if held else []
            held = [*held, door.descriptor]
        arguments = [*interpreter, str(deadline), *options, "--", *command]
        self._guard = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, env={**os.environ, **environment}, pass_fds=held, cwd=place
        )
        self._pipe_lock = threading.Lock()
        self._asked_to_end = False

    @property
    def pid(self) -> int:
        """Process id of the guard."""
        return self._guard.pid

    def wait(self) -> int:
        """Wait until the command has ended; returns its exit code, or 128 + signal if a signal ended it.

        The result is 128 + TERM if the command ended with 0 after it was asked to end: its work is not finished.
        """
        code = self._guard.wait()
        self.abandon()
        if code == 0 and self._asked_to_end:
            code = -signal.SIGTERM
        return code if code >= 0 else 128 - code

    def terminate(self) -> None:
        """Send TERM to the command's whole process group."""
        self._asked_to_end = True
        self._send(b"T")

    def kill(self) -> None:
        """Kill the command's whole process group."""
        self._send(b"K")

    def abandon(self) -> None:
        """Close the pipe to the guard, as the end of this process does: a command that still runs is killed."""
        pipe = self._guard.stdin
        assert pipe is not None, "the guard was started with a pipe"
        with self._pipe_lock:
            pipe.close()

    def _send(self, letter: bytes) -> None:
        pipe = self._guard.stdin
        assert pipe is not None, "the guard was started with a pipe"
        with self._pipe_lock:  # once the descriptor is closed, its number may be another file's
            if pipe.closed:
                return
            try:
                os.write(pipe.fileno(), letter)
            except BrokenPipeError:
                return  # the guard has ended, and the command with it
