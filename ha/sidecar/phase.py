"""Phase: what a sidecar is doing. It is always in one phase.

    Standby       nothing is granted                       a warm standby's command may run, or be about to start
    Reconciling   a dead sidecar's leadership is taken up  its command runs on, until that sidecar's deadline
    Leading       granted; the command is to run           the command runs, or waits to be started again
    Ending        granted; the command is to run no more   the lease is given back once the command has ended

    Standby ------granted--> Leading --revoked, or no restart--> Ending --the command has ended--> Standby
    Reconciling --granted--> Leading
    Reconciling --revoked--> Ending

Apart from the phase there is the exit code: once it is set, the sidecar ends as soon as it is a standby without a
running command.
"""

from dataclasses import dataclass

from ha.config.restart_strategy import RestartStrategy
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER


@dataclass(frozen=True, slots=True)
class Standby:
    """Nothing is granted.

    Attributes:
        start_at: when the command is started again to warm up, in seconds of the clock; NEVER if it is not to be.
    """

    start_at: float = NEVER


@dataclass(frozen=True, slots=True)
class Reconciling:
    """The leadership of a sidecar that has died on this host is being taken up, and nothing is granted yet.

    Attributes:
        leader: the leadership.
    """

    leader: LeaderDirectory


@dataclass(frozen=True, slots=True)
class Leading:
    """The job is granted and the command is to run.

    Attributes:
        leader: the directory that was granted.
        strategy: decides whether the command is started again after a failure.
        start_at: when the command that has failed is started again; NEVER while it runs.
    """

    leader: LeaderDirectory
    strategy: RestartStrategy
    start_at: float = NEVER


@dataclass(frozen=True, slots=True)
class Ending:
    """The job is granted still, but the command is to run no more: the leadership is about to end.

    Attributes:
        leader: the directory that was granted.
        successor: the contender that an operator asked for; empty for none.
    """

    leader: LeaderDirectory
    successor: str = ""


Phase = Standby | Reconciling | Leading | Ending
