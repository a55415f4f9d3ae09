"""Run: one run of a sidecar's command, and the state that the command is in."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ha.leadership import grant_file
from ha.sidecar.guarded_command import GuardedCommand
from ha.sidecar.orphan import Orphan
from leader.timing import NEVER


class CommandState(Enum):
    """The state of a sidecar's command."""

    COLD = "cold"
    """It is not running: the job is not granted, and no standby warms up."""
    WARMING = "warming"
    """It was started and does not wait for its grant yet."""
    WARM = "warm"
    """It waits for its grant."""
    RUNNING = "running"
    """The job is granted to it."""
    RESTARTING = "restarting"
    """It has failed and will be started again within this leadership."""


@dataclass(slots=True, eq=False)
class Run:
    """One run of the command.

    Attributes:
        child: the guard and the command.
        grant: the file in which the run looks for its grant; None if it was started with one.
        epoch: the epoch that was granted to it; 0 if none yet.
        kill_at: when it is killed unless it has ended, in seconds of the clock; NEVER if it was not asked to end.
        code: its exit code, once it has ended.
    """

    child: GuardedCommand | Orphan
    grant: Path | None
    epoch: int
    kill_at: float = NEVER
    code: int = 0

    def state(self, since: float) -> tuple[CommandState, float]:
        """Return its state, and since when it is in that, given since when it runs or has its grant."""
        if self.epoch or self.grant is None:
            return CommandState.RUNNING, since
        if (awaited := grant_file.awaited_since(self.grant)) is not None:
            return CommandState.WARM, awaited
        return CommandState.WARMING, since

    @property
    def has_finished(self) -> bool:
        """Whether its end means that the job has finished.

        A warm command that exits with 0 before it has taken its grant has not done the job's work.
        """
        return self.code == 0 and (self.grant is None or grant_file.taken(self.grant))
