"""What an agent of this host was told of a job, as other processes of the host find it. No I/O."""

from typing import Protocol

import msgspec

from leader.information import LeaderInformation


class Snapshot(msgspec.Struct, frozen=True):
    """One answer that an agent was given, and for how long it may be passed on.

    Attributes:
        job: the job's name.
        epoch: the highest that the agent knows; 0 if the job never had a leader, or does not exist.
        session_id: of that epoch; empty for epoch 0.
        information: None if nobody leads.
        at: boot-clock seconds when the agent was told.
        good_until: boot-clock seconds after which it is worth nothing; counted from before the agent asked.
        verified: whether HDFS had said the same.
    """

    job: str
    epoch: int
    session_id: str
    information: LeaderInformation | None
    at: float
    good_until: float
    verified: bool


class Snapshots(Protocol):
    """Where a reader finds them. None of these raises, and what is found is in time."""

    def find(self, job: str) -> Snapshot | None:
        """Return the job's snapshot, in microseconds; None if there is none that can be trusted."""

    def ask(self, job: str, timeout: float) -> Snapshot | None:
        """Ask the host's agent for one, and wait that many seconds at most; None, and at once, if there is no agent."""
