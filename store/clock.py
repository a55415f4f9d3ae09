"""The one clock that durations are measured with, and the one by which operators date."""

import threading
import time
from typing import Protocol

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return seconds on the host's boot clock, which all its processes share."""
    # Unlike CLOCK_MONOTONIC it runs on while the machine is suspended, so a belief does not outlive a closed laptop lid
    # or a suspended virtual machine; unlike the wall clock it cannot be set.
    return time.clock_gettime(_CLOCK)


def wall() -> float:
    """Return seconds since 1970 on the wall clock: for the end of a bar, which an operator has dated."""
    # Nothing else may decide by it. A bar keeps a contender from taking over and makes none lead, so a jump of this
    # clock moves no leader; see leader.layout.bar.
    return time.time()


class Clock(Protocol):
    """Time for code that waits: the boot clock, or a simulation's."""

    def now(self) -> float:
        """Return seconds on the clock."""

    def sleep(self, seconds: float) -> None:
        """Wait for that long."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set, for that long at most; returns whether it is."""


class _BootClock:
    now = staticmethod(now)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


BOOT_CLOCK: Clock = _BootClock()  # the clock that `now` reads
