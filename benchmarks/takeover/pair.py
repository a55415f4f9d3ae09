"""Pair of contenders for one job, of one system: a leader and a standby. A new standby replaces a lost contender.

The systems are this project's sidecar, kazoo's ``Election`` and Curator's ``LeaderLatch``. Each contender has the
snapshots of a host of its own, and an agent that writes them, as ``ha run`` does it.
"""

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benchmarks.programs import wait
from benchmarks.takeover.network import LostHost
from ha.drill.sandbox_environment import Process
from ha.history.events import Granted, load

COMMAND = ("sleep", "infinity")
"""Command of the leader. It ends at once on SIGTERM, so an orderly end takes no longer than the election."""


@dataclass(frozen=True)
class System:
    """One system that keeps a job available."""

    name: str  # in tables
    module: str  # its program
    # name of its election in ZooKeeper (:mod:`benchmarks.baselines.election`); empty for this project
    baseline: str = ""

    def command(self, job: str, contender: str) -> list[str]:
        own = ["run", job, "--endpoint", f"jobmaster={contender}:1"] if not self.baseline else [job]
        return [sys.executable, "-m", self.module, *own, "--contender", contender, "--", *COMMAND]


HERE = System("Hybrid HA", "ha.cli")
KAZOO = System("kazoo Election", "benchmarks.baselines.kazoo_election", "kazoo")
CURATOR = System("Curator LeaderLatch", "benchmarks.baselines.curator_latch", "curator")
WITH_AGENT = "Hybrid HA, reader with an agent"
"""The first of them once more, as a reader on the host of an agent finds its leaders."""

SYSTEMS = (HERE, KAZOO, CURATOR)


START_WITHIN = 60.0  # Seconds for a contender to start; a Java virtual machine starts slowly on a busy machine
CONTENDS = "contending as"  # Printed by all contenders once they contend


class Contender(Process):
    """One process that may lead, with its children."""

    def __init__(
        self, system: System, job: str, name: str, environment: Mapping[str, str], folder: Path, host: LostHost | None
    ) -> None:
        self._history = folder / name
        self._history.mkdir()
        self.host = host
        words = system.command(job, name)
        command = host.command(words) if host is not None else words
        own = {"HA_HISTORY": str(self._history), "HA_SNAPSHOTS": str(folder / f"{name}-snapshots")}
        super().__init__(name, command, {**environment, **own}, folder)

    @property
    def contends(self) -> bool:
        return CONTENDS in self.log()

    def granted(self) -> float | None:
        """Time of its grant in boot-clock seconds; None without one."""
        grants = (event.at for event in load(self._history) if isinstance(event, Granted))
        return next(grants, None)

    def end(self) -> None:
        """Kill it and its children, unless it has ended: its process id may belong to another process by then."""
        if self.running:
            super().end()

    def resign(self) -> None:
        self._process.send_signal(signal.SIGTERM)


class Pair:
    """A leader and a standby of one job."""

    def __init__(
        self, system: System, job: str, environment: Mapping[str, str], folder: Path, hosts: list[LostHost | None]
    ) -> None:
        self.system, self.job = system, job
        self._environment, self._folder = dict(environment), folder
        self._free = list(hosts)
        self._numbers = count(1)
        self.members: list[Contender] = []

    @property
    def leader(self) -> Contender:
        return self.members[0]

    @property
    def standby(self) -> Contender:
        return self.members[1]

    def fill(self) -> None:
        """Start the missing contenders; return when the leader leads and the standby contends."""
        while len(self.members) < 2:  # noqa: PLR2004  # a pair
            self.members.append(self._contender(self._free.pop()))
            self._started(self.members[-1], leads=len(self.members) == 1)

    def renew(self) -> None:
        """End the leader in an orderly way; return when another contender leads, and a new standby contends."""
        old = self.members.pop(0)
        self.members.append(self._contender(self._free.pop() if self._free else old.host))
        self._started(self.members[-1], leads=False)
        old.resign()
        led = f"a leader of {self.system.name} after an orderly end"
        wait(lambda: any(member.granted() is not None for member in self.members), led, START_WITHIN)
        self.members.sort(key=lambda member: member.granted() is None)
        old.end()

    def replace(self) -> None:
        """End the lost leader's remains; the standby becomes the leader."""
        lost = self.members.pop(0)
        lost.end()
        if lost.host is not None:
            lost.host.restore()
        self._free.append(lost.host)

    def end(self) -> None:
        for member in self.members:
            member.end()
        self.members.clear()

    def _contender(self, host: LostHost | None) -> Contender:
        name = f"{self.job}-{next(self._numbers)}"
        return Contender(self.system, self.job, name, self._environment, self._folder, host)

    def _started(self, contender: Contender, *, leads: bool) -> None:
        def started() -> bool:
            return contender.contends and not (leads and contender.granted() is None)

        wait(started, f"{contender.name} of {self.system.name} at work", START_WITHIN, contender)
