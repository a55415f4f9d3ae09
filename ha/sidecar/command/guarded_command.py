"""GuardedCommand: one run of a sidecar's command: the two processes that :mod:`ha.sidecar.command.guard` describes.

A :class:`Run` is that, or one whose sidecar is gone, with the state that it is in.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ha.program import grant_file
from ha.sidecar.command.offspring import end_marked
from ha.sidecar.command.orphan import Orphan, told


@dataclass(frozen=True, slots=True)
class Door:
    """Where the successor of this process connects to the guard of the command."""

    descriptor: int  # of a listening socket
    within: float  # seconds for which a successor is awaited


class GuardedCommand:
    """One run of a command under a guard, which kills it when the leadership or the sidecar is gone."""

    def __init__(
        self,
        command: Sequence[str],  # program and arguments
        environment: Mapping[str, str],  # added to this process's own
        deadline: Path,  # the file of the `ha.program.deadline_file.DeadlineWriter`
        # Descriptors that the guard keeps open until all that the command has started is gone.
        held: Sequence[int] = (),
        grant: Path | None = None,  # the deadline counts from when this file exists; None if the job is granted already
        place: Path | None = None,  # the command's working directory; None for this process's own
        # Where a successor of this process may take the command up; it gets the first of `held`.
        door: Door | None = None,
        lock: int = -1,  # another descriptor to keep open: that of the directory with the deadline; -1 for none
        output: Path | None = None,  # a log of everything that the command writes; None for none
    ) -> None:
        # -P: a directory called `ha` in the user's working directory must not be imported instead of this package.
        interpreter = [sys.executable, "-P", "-m", "ha.sidecar.command.guard"]
        options = [f"grant={grant}"] if grant else []
        options += [f"output={output}"] if output else []
        if door is not None:
            options += [f"door={door.descriptor}", f"within={door.within}"]
            options += [f"listener={held[0]}"] if held else []
            held = [*held, door.descriptor]
        held = [*held, lock] if lock >= 0 else held
        arguments = [*interpreter, str(deadline), *options, "--", *command]
        self._guard = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, env={**os.environ, **environment}, pass_fds=held, cwd=place
        )
        self._directory = deadline.parent
        self._pipe_lock = threading.Lock()
        self._asked_to_end = threading.Event()

    @property
    def pid(self) -> int:
        """Process id of the guard."""
        return self._guard.pid

    def wait(self) -> int:
        """Wait until the command has ended; returns its exit code, or 128 + signal if a signal ended it."""
        # 128 + TERM if the command ended with 0 when it was asked to end: its work is not finished.
        code = self._guard.wait()
        self.abandon()
        if code < 0:  # a killed guard ends nothing but the command
            end_marked(self._directory)
        return told(code if code >= 0 else 128 - code, self._asked_to_end)

    def terminate(self) -> None:
        """Send TERM to the command's whole process group."""
        self._asked_to_end.set()
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


class CommandState(Enum):
    """The state of a sidecar's command."""

    COLD = "cold"  # it is not running: the job is not granted, and no standby warms up
    WARMING = "warming"  # it was started and does not wait for its grant yet
    WARM = "warm"  # it waits for its grant
    RUNNING = "running"  # the job is granted to it
    RESTARTING = "restarting"  # it has failed and will be started again within this leadership


@dataclass(slots=True, eq=False)
class Run:
    """One run of the command."""

    child: GuardedCommand | Orphan  # the guard and the command
    grant: Path | None  # the file in which the run looks for its grant; None if it was started with one
    epoch: int  # the epoch that was granted to it; 0 if none yet
    place: Path | None = None  # its working directory; None if that is the sidecar's own
    code: int = 0  # its exit code, once it has ended
    took: bool = False  # whether it was seen to have taken its grant: the mark may be removed later

    def state(self, since: float) -> tuple[CommandState, float]:
        """Return its state, and since when it is in that, given since when it runs or has its grant."""
        if self.epoch or self.grant is None:
            return CommandState.RUNNING, since
        if (awaited := grant_file.awaited_since(self.grant)) is not None:
            return CommandState.WARM, awaited
        return CommandState.WARMING, since

    def note_taken(self) -> None:
        """Note it if it has taken its grant."""
        self.took = self.took or (self.grant is not None and grant_file.taken(self.grant))

    @property
    def has_finished(self) -> bool:
        """Whether its end means that the job has finished."""
        # A warm command that exits with 0 before it has taken its grant has not done the job's work.
        self.note_taken()
        return self.code == 0 and (self.grant is None or self.took)
