"""Where a contender stands, and the one step for the file system that it has under way."""

from dataclasses import dataclass
from enum import Enum

from leader.confirmation import Change
from leader.events import FilesCommand
from leader.lease import Lease
from leader.names import LeaderDirectory


class Phase(Enum):
    """Where the contender stands."""

    STANDBY = "standby"
    """Holds nothing; looks for a chance if it contends."""
    CLAIMING = "claiming"
    """Holds the lease, not yet the leader directory."""
    LEADING = "leading"
    """Leads."""
    STEPPING_DOWN = "stepping down"
    """Leads no more, but keeps the lease while its work is being stopped."""
    RELEASING = "releasing"
    """Gives the lease back."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command for the file system, and what will be there once it is done: a lease, a directory, or a change."""

    command: FilesCommand
    lease: Lease | None = None
    directory: LeaderDirectory | None = None
    change: Change | None = None

    def purpose(self, phase: Phase) -> str:
        """What the step was for, to complete the sentence "it could not ..."."""
        if self.directory is not None:
            return "claim the leadership"
        if self.change is not None:
            return "publish what it confirmed"
        if self.lease is not None:
            return _LEASE_CHANGES.get(phase, "renew its lease")
        return "create the job"


_LEASE_CHANGES = {Phase.STANDBY: "seize the lease", Phase.RELEASING: "give its lease back"}
