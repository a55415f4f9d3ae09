"""Two contenders for one job, one of which leads; the one that is lost is replaced by a new standby."""

import signal
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from threading import Event

from benchmarks.takeover.network import LostHost
from benchmarks.takeover.systems import System
from ha.drill.sandbox_ground import Process
from ha.history.events import Granted, load
from store.clock import now

START_WITHIN = 60.0
"""Seconds that a contender has to start; a Java virtual machine on a busy machine takes its time."""

LOOK = 0.2
"""Seconds between two looks at what contenders have written."""

CONTENDS = "contending as"
"""What all guards say once they do."""


class NoLeader(Exception):
    """A contender did not start, or was not granted what nobody else has; the text says what it said."""


class Contender(Process):
    """One process that may lead, with whatever it starts."""

    def __init__(
        self, system: System, job: str, name: str, environment: Mapping[str, str], folder: Path, host: LostHost | None
    ) -> None:
        """Start it.

        Args:
            system: how it guards the job.
            job: the job's name.
            name: of the contender.
            environment: all of its variables.
            folder: for its output and its history.
            host: the one that it runs on; None for this one.
        """
        self._history = folder / name
        self._history.mkdir()
        self.host = host
        words = system.command(job, name)
        command = host.command(words) if host is not None else words
        super().__init__(name, command, {**environment, "HA_HISTORY": str(self._history)}, folder)

    @property
    def contends(self) -> bool:
        """Whether it has begun to contend."""
        return CONTENDS in self.log()

    def granted(self) -> float | None:
        """When it was granted the leadership, in boot-clock seconds; None if it was not."""
        grants = (event.at for event in load(self._history) if isinstance(event, Granted))
        return next(grants, None)

    def end(self) -> None:
        """Kill it and everything below it, unless it has ended: then its process id may be another's by now."""
        if self.running:
            super().end()

    def resign(self) -> None:
        """Ask it to end in an orderly way."""
        self._process.send_signal(signal.SIGTERM)


class Pair:
    """A leader and a standby of one job."""

    def __init__(
        self, system: System, job: str, environment: Mapping[str, str], folder: Path, hosts: list[LostHost | None]
    ) -> None:
        """Start nothing yet.

        Args:
            system: how they guard the job.
            job: the job's name.
            environment: all variables of the contenders.
            folder: for output and histories; it exists.
            hosts: two, which they run on.
        """
        self.system, self.job = system, job
        self._environment, self._folder = dict(environment), folder
        self._free = list(hosts)
        self._numbers = count(1)
        self.members: list[Contender] = []

    @property
    def leader(self) -> Contender:
        """The one that leads."""
        return self.members[0]

    @property
    def standby(self) -> Contender:
        """The one that would take over."""
        return self.members[1]

    def fill(self) -> None:
        """Start who is missing; returns when the leader leads and the standby contends.

        Raises:
            NoLeader: one of them does not.
        """
        while len(self.members) < 2:  # noqa: PLR2004  # a pair
            name = f"{self.job}-{next(self._numbers)}"
            host = self._free.pop()
            self.members.append(
                Contender(self.system, self.job, name, self._environment, self._folder, host),
            )
            self._started(self.members[-1], leads=len(self.members) == 1)

    def replace(self) -> None:
        """The leader was lost: end what is left of it; the standby is the leader now."""
        lost = self.members.pop(0)
        lost.end()
        if lost.host is not None:
            lost.host.restore()
        self._free.append(lost.host)

    def end(self) -> None:
        """End both."""
        for member in self.members:
            member.end()
        self.members.clear()

    def _started(self, contender: Contender, *, leads: bool) -> None:
        end = now() + START_WITHIN
        while not contender.contends or (leads and contender.granted() is None):
            if not contender.running or now() > end:
                raise NoLeader(f"{contender.name} of {self.system.name} does not lead: {contender.log()[-500:]}")
            Event().wait(LOOK)
