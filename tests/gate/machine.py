"""The machine beside the tests: how slow it is at the start, and how busy it was when something failed."""

import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from ha.hosts.java import find_java

PYTHON_S, JAVA_S = 0.05, 0.3
"""Seconds that a Python and a JVM take to start on the machine for which the limits were chosen, when it is quiet."""

TRIES = 3
START_S = 60.0


def slowness() -> float:
    """Return how many times longer than usual a Python and a JVM take to start; at least 1."""
    return max(
        1.0, _median([sys.executable, "-I", "-c", ""]) / PYTHON_S, _median([str(find_java().path), "-version"]) / JAVA_S
    )


def _median(command: list[str]) -> float:
    def once() -> float:
        begun = time.monotonic()
        subprocess.run(command, capture_output=True, timeout=START_S, check=True)
        return time.monotonic() - begun

    return statistics.median(once() for _ in range(TRIES))


def core_seconds() -> float:
    """Return the processor time that all processes of this machine have taken since its start."""
    fields = [int(each) for each in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / 100


class Watch:
    """Notes each second the load, the pressure on the processors, and how long this process was kept from running."""

    EACH_S = 0.05

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float, float, float]] = deque(maxlen=7200)
        threading.Thread(target=self._go, name="machine", daemon=True).start()

    def _go(self) -> None:
        last, worst, told = time.monotonic(), 0.0, time.monotonic()
        while True:
            time.sleep(self.EACH_S)
            at = time.monotonic()
            worst, last = max(worst, at - last - self.EACH_S), at
            if at - told >= 1:
                self._samples.append((at, float(Path("/proc/loadavg").read_text().split()[0]), pressure(), worst))
                worst, told = 0.0, at

    def at(self, moment: float, before: float = 30.0) -> str:
        """Say what the machine did in the seconds before a moment."""
        seen = [each for each in list(self._samples) if moment - before <= each[0] <= moment + 1]
        if not seen:
            return "the machine was not looked at"
        return (
            f"load {max(each[1] for each in seen):.0f}, processor pressure {max(each[2] for each in seen):.0f} %,"
            f" longest stall {max(each[3] for each in seen):.1f} s in the {before:.0f} s before"
        )

    def stall(self) -> float:
        return max((each[3] for each in list(self._samples)), default=0.0)


def pressure() -> float:
    """Return in which share of the last ten seconds somebody waited for a processor, in percent; 0 if not known."""
    try:
        return float(Path("/proc/pressure/cpu").read_text().partition("avg10=")[2].split()[0])
    except (OSError, IndexError):
        return 0.0
