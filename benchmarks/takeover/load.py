"""How busy the machine was meanwhile: figures of a machine that has no time for its processes are worth nothing."""

import os
from pathlib import Path

from store.clock import now

TICKS = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count() or 1
MICROSECONDS = 1_000_000


class Load:
    """What the processors have done since it was made."""

    def __init__(self) -> None:
        self._began = now()
        self._busy, self._waited = busy(Path("/proc/stat").read_text(encoding="ascii")), _waited()

    def since(self) -> tuple[float, float]:
        """Return the share of all processors' time that was used, and of time in which somebody waited for one.

        The second is NaN where the kernel does not say.
        """
        passed = now() - self._began
        used = busy(Path("/proc/stat").read_text(encoding="ascii")) - self._busy
        return used / TICKS / CPUS / passed, (_waited() - self._waited) / MICROSECONDS / passed


def busy(stat: str) -> int:
    """Return the ticks of all processors in which they did something, from the text of ``/proc/stat``."""
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
