"""Participant: one ``ha run`` sidecar with its driver, to be killed, frozen and woken."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ha.drill.kill import descendants


class Participant:
    """A sidecar process with its guard, its driver, and the driver's JVM and Python workers."""

    def __init__(self, name: str, job: str, driver: Sequence[str], environment: Mapping[str, str], logs: Path) -> None:
        self.name = name
        self.address = f"{name}.demo:6123"
        self.log = logs / f"{name}.log"
        command = [
            *(sys.executable, "-m", "ha.cli", "run", job, "--contender", name),
            *("--endpoint", f"jobmaster={self.address}", "--", *driver),
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env={**os.environ, **environment}, stdout=log, stderr=log, start_new_session=True
            )
        self._frozen: list[int] = []
        self._copies: list[subprocess.Popen[bytes]] = []

    @property
    def running(self) -> bool:
        """Whether the sidecar still runs."""
        return self._process.poll() is None

    def kill_sidecar(self) -> None:
        """Send ``kill -9`` to the sidecar alone; its command must die with it."""
        self._process.kill()
        self._process.wait()

    def family(self) -> list[int]:
        """Return the process ids of the sidecar and everything below it, parents first."""
        return descendants(self._process.pid)

    def freeze(self) -> None:
        """Stop the sidecar and everything below it."""
        self._frozen = self.family()
        for pid in self._frozen:
            _signal(pid, signal.SIGSTOP)

    def wake_driver(self) -> None:
        """Wake the driver, its JVM and its workers; the sidecar and the guard stay frozen.

        A frozen guard copies nothing to the log, and a driver that writes much would stand still for it. Two processes
        do this instead, until the driver has ended.
        """
        driver = self._frozen[2:]
        with self.log.open("ab") as log:
            for stream in (1, 2):
                copy = ["/bin/cat", f"/proc/{driver[0]}/fd/{stream}"]
                self._copies.append(subprocess.Popen(copy, stdout=log, stderr=subprocess.DEVNULL))
        for pid in driver:
            _signal(pid, signal.SIGCONT)

    def wake(self) -> None:
        """Wake all of it."""
        for pid in self._frozen:
            _signal(pid, signal.SIGCONT)

    def wait(self, timeout: float) -> int | None:
        """Return the sidecar's exit code; None if it does not end within ``timeout`` seconds."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Kill what is left of it."""
        kill([*self.family(), *self._frozen])
        for each in (self._process, *self._copies):
            each.wait()


def alive(pids: Sequence[int]) -> list[int]:
    """Return those processes that still run."""
    living = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            living.append(pid)
    return living


def kill(pids: Sequence[int]) -> None:
    """Send ``kill -9`` to processes, also if they are frozen."""
    for pid in pids:
        _signal(pid, signal.SIGKILL)
        _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
