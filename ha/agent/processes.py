"""Leader processes: notices the end of a leader's process by a connection to it, while ZooKeeper is away.

Readers use it. Its thread starts when the first process is followed, which is in an outage of ZooKeeper.
"""

import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ha.config.settings import Settings
from leader.layout.contact import ContactAddress
from store.clock import now
from store.lazy_imports import will_import

if TYPE_CHECKING:
    import asyncio

    from leader.contender.liveness_probe import LivenessProbes
    from leader.election.ports import Heard, LivenessProbe, Timer
    from leader.election.suspicion import OnGone, Suspicion


class LeaderProcesses:
    """One connection to each process that is followed. For any thread; a forked child may go on using it."""

    def __init__(self, window: float) -> None:
        """Start without processes to follow."""
        # `window`: seconds; see :class:`leader.election.suspicion.ProcessMonitor`.
        self._window = window
        self._lock = threading.Lock()
        self._started: tuple[asyncio.AbstractEventLoop, Suspicion] | None = None

    def follow(self, contact: ContactAddress, on_gone: "OnGone") -> None:
        """Call ``on_gone`` on another thread if the process is gone, as :mod:`leader.election.suspicion` says."""
        loop, suspicion = self._start()
        loop.call_soon_threadsafe(suspicion.follow, contact, on_gone)

    def leave(self, contact: ContactAddress, on_gone: "OnGone") -> None:
        """Stop reporting, except for a report that is under way."""
        loop, suspicion = self._start()
        loop.call_soon_threadsafe(suspicion.leave, contact, on_gone)

    def forked(self) -> None:
        """Reset in a forked child, which has neither the thread nor followers."""
        self._lock, self._started = threading.Lock(), None

    def _start(self) -> "tuple[asyncio.AbstractEventLoop, Suspicion]":
        with self._lock:
            if self._started is None:
                self._started = _start(self._window)
            return self._started


def processes_of(settings: Settings) -> LeaderProcesses | None:
    """Return the connections of a process with these settings; None if suspicion is off."""
    return LeaderProcesses(settings.leadership.session_timeout) if settings.leadership.suspicion else None


def _start(window: float) -> "tuple[asyncio.AbstractEventLoop, Suspicion]":
    will_import("asyncio", "leader.contender.liveness_probe", "leader.election.suspicion")
    import asyncio  # noqa: PLC0415  # a lookup while all is well needs none of these

    from leader.contender.liveness_probe import LivenessProbes  # noqa: PLC0415
    from leader.election.suspicion import Suspicion  # noqa: PLC0415

    loop = asyncio.new_event_loop()
    suspicion = Suspicion(_Environment(loop, LivenessProbes(loop)), window, random.random)
    threading.Thread(target=loop.run_forever, name="ha-leader-processes", daemon=True).start()
    return loop, suspicion


class _Environment:
    """The outside world of the monitors, on the thread of an event loop."""

    def __init__(self, loop: "asyncio.AbstractEventLoop", probes: "LivenessProbes") -> None:
        self._loop = loop
        self._probes = probes

    def probe(self, address: ContactAddress, on_event: "Callable[[Heard], None]") -> "LivenessProbe":
        """Connect to a process and report events about it."""
        return self._probes.probe(address, on_event)

    def now(self) -> float:
        """Boot-clock seconds."""
        return now()

    def call_at(self, when: float, callback: Callable[[], None]) -> "Timer":
        """Call back at that time."""
        return self._loop.call_later(max(0.0, when - now()), callback)
