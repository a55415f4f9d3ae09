"""The command of a sidecar, run by a guard that kills it when the leadership or the sidecar is gone."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


class Supervised:
    """A running command and its guard."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        belief: Path,
        held: Sequence[int] = (),
        grant: Path | None = None,
    ) -> None:
        """Start both.

        Args:
            command: program and arguments.
            environment: added to this process's own.
            belief: the file in which :class:`ha.belief.BeliefWriter` shares the belief.
            held: descriptors that the guard keeps open until the command's whole group is gone.
            grant: the file before which the belief is none of the command's concern; None if it was granted already.
        """
        # -P: a directory called `ha` where the user happens to stand must not be taken for this package.
        guard = [sys.executable, "-P", "-m", "ha.guard", str(belief), *([str(grant)] if grant else []), "--", *command]
        self._process = subprocess.Popen(guard, stdin=subprocess.PIPE, env={**os.environ, **environment}, pass_fds=held)
        self._telling = threading.Lock()
        self._asked = False

    @property
    def pid(self) -> int:
        """Process id of the guard."""
        return self._process.pid

    def wait(self) -> int:
        """Wait for the command's end and return its exit code, 128 + signal if a signal ended it.

        A command that was asked to end has not finished its work, though it may end with 0: that is 128 + TERM as well.
        """
        code = self._process.wait()
        self.abandon()
        if code == 0 and self._asked:
            code = -signal.SIGTERM
        return code if code >= 0 else 128 - code

    def terminate(self) -> None:
        """Ask the command's whole process group to end."""
        self._asked = True
        self._tell(b"T")

    def kill(self) -> None:
        """Kill the command's whole process group."""
        self._tell(b"K")

    def abandon(self) -> None:
        """Close the pipe, as the end of this process would: the command is killed if it still runs."""
        pipe = self._process.stdin
        assert pipe is not None, "the guard was started with a pipe"
        with self._telling:
            pipe.close()

    def _tell(self, letter: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None, "the guard was started with a pipe"
        with self._telling:  # a descriptor that is closed meanwhile may be another file's by then
            if pipe.closed:
                return
            try:
                os.write(pipe.fileno(), letter)
            except BrokenPipeError:
                return  # the guard has ended, and with it the command
