"""Command of a contender: it dies with the contender, and its process group ends as a whole.

Wrappers that people write themselves rarely do either. It is done for them here, so that only elections are compared.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from benchmarks.baselines import leash
from store.clock import now

POLL_S = 0.02
KILLED_WITHIN_S = 120.0


class Command:
    """A running command. The thread that starts it also stops it: the kernel takes that thread for its parent."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        start = [sys.executable, "-I", leash.__file__, str(os.getpid()), "--", *arguments]
        self._process = subprocess.Popen(
            start, stdin=subprocess.DEVNULL, env={**os.environ, **environment}, process_group=0
        )
        self.frozen = False

    @property
    def pid(self) -> int:
        """Process id of the command, and of its group."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the command has ended; other processes of its group may be left."""
        # The command has not been waited for yet, so no other process can have its id.
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)
        self.frozen = False

    def stop(self, grace: float) -> int:
        """End the whole group, a frozen one at once; return the exit code, 128 + signal if a signal ended it."""
        if not self.frozen:
            self._signal(signal.SIGTERM)
            end = now() + grace
            while not self.ended and now() < end:
                threading.Event().wait(POLL_S)
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)
        code = self._process.wait(KILLED_WITHIN_S)
        return code if code >= 0 else 128 - code

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)
