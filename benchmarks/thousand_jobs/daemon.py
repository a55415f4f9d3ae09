"""A daemon with many jobs, seen from outside: what it leads, its memory, its share of a processor."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

from ha.drill.sandbox_ground import Process
from store.clock import now

GRANTED = re.compile(rb" (\S+): granted at epoch ")
"""What the daemon says of every grant; to read that costs the daemon nothing."""

LOOK = 0.05
"""Seconds between two looks at what it says."""

TICKS = os.sysconf("SC_CLK_TCK")
KILOBYTE = 1024
MEGABYTE = 1_000_000


class NotGranted(Exception):
    """The daemon does not lead all of its jobs; the text says what it said last."""


class Daemon(Process):
    """One ``ha daemon``."""

    def __init__(self, name: str, jobs: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        """Start it.

        Args:
            name: of the contender.
            jobs: for which it contends.
            environment: all of its variables.
            folder: for its output.
        """
        words = ["daemon", *jobs, "--contender", name, "--endpoint", f"jobmaster={name}:1"]
        super().__init__(name, [sys.executable, "-m", "ha.cli", *words], environment, folder)
        self._jobs = len(jobs)

    @property
    def said(self) -> int:
        """How much it has said until now, in bytes."""
        return self._log.stat().st_size

    def grants(self, since: int = 0) -> int:
        """Return how many jobs it was granted at least once, since it had said so much."""
        return granted(self._log.read_bytes()[since:])

    def granted(self, within: float, since: int = 0) -> list[float]:
        """Wait until it was granted every job; return when each grant was seen, in boot-clock seconds, in order.

        Args:
            within: seconds.
            since: what it said before that does not count; see :attr:`said`.

        Raises:
            NotGranted: that is too short, or it has ended.
        """
        end, seen = now() + within, list[float]()
        while len(seen) < self._jobs:
            if not self.running or now() > end:
                last = self.log()[-500:]
                raise NotGranted(f"{self.name} was granted {len(seen)} of {self._jobs} jobs in {within:g} s: {last}")
            Event().wait(LOOK)
            at = now()
            seen += [at] * (self.grants(since) - len(seen))
        return seen

    def memory(self) -> float:
        """Megabytes of it that are resident."""
        return resident(Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii"))

    def processor(self) -> float:
        """Seconds of processor time that it has used."""
        return used(Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii"))

    def threads(self) -> int:
        """How many it has."""
        return len(list(Path(f"/proc/{self._process.pid}/task").iterdir()))


def granted(said: bytes) -> int:
    """Return how many different jobs were granted, from what a daemon has said."""
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
