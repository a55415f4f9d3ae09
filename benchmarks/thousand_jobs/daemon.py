"""Daemon with many jobs, seen from outside: its grants, memory and processor time."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event

from ha.drill.sandbox_environment import Process
from ha.sandbox.polling import SandboxError
from store.clock import now

GRANTED = re.compile(rb" (\S+): granted at epoch ")  # Log line of every grant; reading the log costs the daemon nothing
LOOK = 0.05  # Seconds between two reads of its log
TICKS = os.sysconf("SC_CLK_TCK")
KILOBYTE = 1024
MEGABYTE = 1_000_000


class Daemon(Process):
    """One ``ha host daemon``."""

    def __init__(self, name: str, jobs: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        words = ["host", "daemon", *jobs, "--contender", name, "--endpoint", f"jobmaster={name}:1"]
        super().__init__(name, [sys.executable, "-m", "ha.cli", *words], environment, folder)
        self._jobs = len(jobs)

    @property
    def said(self) -> int:
        """Size of its log until now, in bytes."""
        return self._log.stat().st_size

    def grants(self, since: int = 0) -> int:
        """Return the number of jobs with a grant in its log after this offset in bytes."""
        return granted(self._log.read_bytes()[since:])

    def granted(self, within: float, since: int = 0) -> list[float]:
        """Wait until it was granted every job; return when each grant was seen, in boot-clock seconds, in order."""
        end, seen = now() + within, list[float]()
        while len(seen) < self._jobs:
            if not self.running or now() > end:
                last = self.log()[-500:]
                raise SandboxError(f"{self.name} was granted {len(seen)} of {self._jobs} jobs in {within:g} s: {last}")
            Event().wait(LOOK)
            at = now()
            seen += [at] * (self.grants(since) - len(seen))
        return seen

    def memory(self) -> float:
        """Its resident memory in megabytes."""
        return resident(Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii"))

    def processor(self) -> float:
        """Its processor time in seconds."""
        return used(Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii"))

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self._process.pid}/task").iterdir()))


def end_all(daemons: Iterable[Daemon]) -> None:
    for each in daemons:
        if each.running:
            each.end()


def granted(said: bytes) -> int:
    """Return the number of different jobs with a grant in a daemon's log."""
    return len(set(GRANTED.findall(said)))


def resident(status: str) -> float:
    """Return the resident memory in megabytes, from the text of ``/proc/<pid>/status``."""
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * KILOBYTE / MEGABYTE


def used(stat: str) -> float:
    """Return the seconds of processor time, from the text of ``/proc/<pid>/stat``."""
    # The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
