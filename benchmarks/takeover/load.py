"""Load of the machine during a round: figures from an overloaded machine mean nothing."""

import os
from pathlib import Path

from store.clock import now

TICKS = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count() or 1
MICROSECONDS = 1_000_000


class Load:
    """Use of the processors since the object was created."""

    def __init__(self) -> None:
        self._began = now()
        self._busy, self._waited = busy(Path("/proc/stat").read_text(encoding="ascii")), _waited()

    def since(self) -> tuple[float, float]:
        """Return the share of all processors' time that was used, and of the time in which a process waited for one.

        The second is NaN if the kernel does not report it.
        """
        passed = now() - self._began
        used = busy(Path("/proc/stat").read_text(encoding="ascii")) - self._busy
        return used / TICKS / CPUS / passed, (_waited() - self._waited) / MICROSECONDS / passed


def busy(stat: str) -> int:
    """Return the busy ticks of all processors, from the text of ``/proc/stat``."""
    user, nice, system, _idle, _iowait, irq, softirq, *_ = map(int, stat.splitlines()[0].split()[1:])
    return user + nice + system + irq + softirq


def waited(pressure: str) -> float:
    """Return the microseconds in which some process waited for a processor, from ``/proc/pressure/cpu``."""
    some = next((line for line in pressure.splitlines() if line.startswith("some ")), "")
    return float(some.rpartition("total=")[2]) if "total=" in some else float("nan")


def _waited() -> float:
    try:
        return waited(Path("/proc/pressure/cpu").read_text(encoding="ascii"))
    except OSError:
        return float("nan")
