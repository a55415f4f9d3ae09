"""What leaders and their commands have done: the words of a history of failures, tries and pauses."""

import logging
from dataclasses import dataclass

from leader.layout.names import LeaderDirectory
from tests.system.simulation.guard import Guard
from tests.system.simulation.world import World

CAUSE, REMEDY = "exit-3", "mend it"
QUERY = "counts"
RETAINED = 2
"""Checkpoints: few, so that old ones give way from early on."""

LONGEST_TELLS = 10.0
"""Seconds after which it is known that a command has run for long."""

logging.getLogger("ha").addHandler(logging.NullHandler())  # there is too much to be told of so many failures


@dataclass(frozen=True)
class Happened:
    """Something that a leader, or its command, has done.

    Attributes:
        at: true time.
        contender: its name.
        epoch: of its leadership.
        what: one of the words below.
        seconds: see there; by the contender's own clock.
        held: whether the leader held the job still, and had not been granted it once more meanwhile.
    """

    at: float
    contender: str
    epoch: int
    what: str
    seconds: float = 0.0
    held: bool = True


GRANTED = "granted"
DECIDED = "decided"
"""It has read the count, and waits for ``seconds``."""
STARTED = "started"
"""The command runs, ``seconds`` after the grant."""
COMPLETED, DOUBTED = "completed", "doubted"
"""The command has completed a batch, or may have."""
FAILED, HOPELESSLY = "failed", "failed hopelessly"
"""The command has failed."""
COUNTED = "counted"
"""What counts the failure has returned."""
LASTED = "lasted"
"""The command has run for so long that failures before it do not matter; the leader has made that known."""
BEFORE = "before"
"""An earlier life of the job has left so many failures (``seconds``)."""
TAKEN_UP = "taken up"
"""Another sidecar has taken the command up, and the leadership with it."""
AGAIN = "again"
"""An operator runs the job once more."""


@dataclass
class Life:
    """One run of the command; it may outlive its sidecar.

    Attributes:
        ends: true time at which it fails; NEVER if it does not.
        batch: whether it is still to complete a batch.
    """

    ends: float
    batch: bool


class Run:
    """One run of the command, which its guard kills at the deadline, whatever its sidecar does."""

    def __init__(self, world: World, number: int, leader: LeaderDirectory, guard: Guard, life: Life) -> None:
        self._world, self.number, self.leader, self.guard, self.life = world, number, leader, guard, life
        self.over = False
        self.asked = False
        """Whether it was asked to end."""

    @property
    def there(self) -> bool:
        """Whether it is there now."""
        return not self.over and self.guard.command_runs and self._world.now < self.guard.holds_until


class Failures:
    """What has happened to the job's commands."""

    def __init__(self) -> None:
        self.happened: list[Happened] = []
        self.lives: dict[int, Life] = {}
        """The command's newest run, by the epoch of its leadership."""
        self.runs: list[Run] = []
        """Those that may be there."""
        self.dice_say_it_fails = True
        """Whether commands may fail; not once all is well."""
