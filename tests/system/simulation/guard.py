"""Simulated guard of a command: outlives its sidecar for a while, with its socket and what its state file says.

The command itself is not simulated here: the driver begins anew with the sidecar that takes it up.
"""

from typing import TYPE_CHECKING

from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from tests.system.simulation.wires import Wires
from tests.system.simulation.world import World

if TYPE_CHECKING:
    from tests.system.simulation.process import Process


class Guard:
    """Of one command of one job; it belongs to one sidecar at a time."""

    def __init__(self, world: World, wires: Wires | None, job: str, leader: LeaderDirectory) -> None:
        self._world, self._wires = world, wires
        self.job, self.leader = job, leader
        self.sidecar: Process | None = None
        """The one that it obeys, or that has died."""
        self.holds_until = float("-inf")
        """True time at which the command is killed: what the deadline file says."""
        self.command_runs, self.endless = True, False

    @property
    def lock_is_free(self) -> bool:
        """Whether another sidecar can take the command up: the former one is dead, and not only paused."""
        return self.sidecar is None or not self.sidecar.alive

    def orphaned(self, within: float) -> None:
        """Wait so many seconds for a new sidecar, and no longer than the belief lasts; if ``NEVER``, for ever.

        No guard waits for ever: the protocol is to bear one that does, where nobody listens.
        """
        dead, self.endless = self.sidecar, within == NEVER
        assert dead is not None, "a sidecar has died"
        if self._wires is not None:
            self._wires.hold(dead)
        if not self.endless:
            self._world.at(min(self.holds_until, self._world.now + within), lambda: self._end_without(dead))

    def _end_without(self, dead: "Process") -> None:
        if self.sidecar is dead:
            self.end()

    def end(self) -> None:
        """Kill the command, and end."""
        self.command_runs = False
        if self._wires is not None and self.sidecar is not None:
            self._wires.let_go(self.sidecar)
