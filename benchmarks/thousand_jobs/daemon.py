"""A daemon with many jobs, seen from outside: what it leads, its memory, its share of a processor."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event

from ha.drill.sandbox_ground import Process
from store.clock import now

GRANTED = b": granted at epoch "
"""In what the daemon says of every grant; counting that costs the daemon nothing."""

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

    def granted(self, within: float) -> list[float]:
        """Wait until it was granted every job; return when each grant was seen, in boot-clock seconds, in order.

        Args:
            within: seconds.

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
            seen += [at] * (self._log.read_bytes().count(GRANTED) - len(seen))
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


def resident(status: str) -> float:
    """Return the resident memory in megabytes, from the text of ``/proc/<pid>/status``."""
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * KILOBYTE / MEGABYTE


def used(stat: str) -> float:
    """Return the seconds of processor time, from the text of ``/proc/<pid>/stat``."""
    # The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
