"""Run: one run of a sidecar's command, and the state that the command is in."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ha.program import grant_file
from ha.sidecar.command.guarded_command import GuardedCommand
from ha.sidecar.command.orphan import Orphan


class CommandState(Enum):
    """The state of a sidecar's command."""

    COLD = "cold"  # it is not running: the job is not granted, and no standby warms up
    WARMING = "warming"  # it was started and does not wait for its grant yet
    WARM = "warm"  # it waits for its grant
    RUNNING = "running"  # the job is granted to it
    RESTARTING = "restarting"  # it has failed and will be started again within this leadership


@dataclass(slots=True, eq=False)
class Run:
    """One run of the command."""

    child: GuardedCommand | Orphan  # the guard and the command
    grant: Path | None  # the file in which the run looks for its grant; None if it was started with one
    epoch: int  # the epoch that was granted to it; 0 if none yet
    place: Path | None = None  # its working directory; None if that is the sidecar's own
    code: int = 0  # its exit code, once it has ended
    took: bool = False  # whether it was seen to have taken its grant: the mark may be removed later

    def state(self, since: float) -> tuple[CommandState, float]:
        """Return its state, and since when it is in that, given since when it runs or has its grant."""
        if self.epoch or self.grant is None:
            return CommandState.RUNNING, since
        if (awaited := grant_file.awaited_since(self.grant)) is not None:
            return CommandState.WARM, awaited
        return CommandState.WARMING, since

    def note_taken(self) -> None:
        """Note it if it has taken its grant."""
        self.took = self.took or (self.grant is not None and grant_file.taken(self.grant))

    @property
    def has_finished(self) -> bool:
        """Whether its end means that the job has finished."""
        # A warm command that exits with 0 before it has taken its grant has not done the job's work.
        self.note_taken()
        return self.code == 0 and (self.grant is None or self.took)
