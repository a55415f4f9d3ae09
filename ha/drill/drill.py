"""Drill: what breaks, and what may come of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ha.drill.environment import Ability
from ha.drill.fixture import Fixture, Setup

Action = Callable[[Fixture], None]  # breaks something and mends it, on a fixture where all is well


@dataclass(frozen=True)
class Expected:
    """Expected outcome of a drill, besides the conditions of every drill.

    ``recovery`` returns the seconds from the fault to the next grant, from the durations in force and ``outage``, the
    true length of the first fault: servers need time to come back. Lookups may fail, ``blind``, only if HDFS is out of
    reach, and ZooKeeper is out of reach too or holds no record.
    """

    changes: tuple[int, int] = (0, 0)  # least and greatest number of further leaders
    recovery: Callable[[Mapping[str, float]], float] | None = None
    blind: bool = False


STAYS = Expected()
"""The leader goes on."""


@dataclass(frozen=True)
class Drill:
    """One drill.

    Its action breaks something and mends it; then there has to be another leader if one is expected, and two batches.
    """

    name: str
    title: str
    group: str  # the kind of fault
    action: Action
    expected: Expected = STAYS
    needs: frozenset[Ability] = frozenset()
    setup: Setup = field(default_factory=Setup)
    baselines: bool = False  # whether these take part as well
    quick: bool = False  # whether the short selection has it


DRILLS: dict[str, Drill] = {}  # all drills by name, in the order in which they are listed and run


def drill(group: str, expected: Expected = STAYS, *needs: Ability, **more: Any) -> Callable[[Action], Action]:
    """Add a function to :data:`DRILLS` as the action of a drill; ``more`` are fields of :class:`Drill`."""
    # Its name is the drill's, and its docstring is the title.

    def add(action: Action) -> Action:
        name = action.__name__.replace("_", "-")
        DRILLS[name] = Drill(name, _title(action), group, action, expected, frozenset(needs), **more)
        return action

    return add


def _title(action: Action) -> str:
    said = " ".join((action.__doc__ or "").split()).removesuffix(".")
    first = said.partition(" ")[0]
    return said if first[1:] != first[1:].lower() else said[0].lower() + said[1:]  # names such as HDFS stay


def bound(promise: str, *durations: str, more: float = 1.0) -> Callable[[Mapping[str, float]], float]:
    """Return a recovery bound: the sum of some durations and ``more`` seconds; ``promise`` describes it."""

    def seconds(settings: Mapping[str, float]) -> float:
        return sum(settings[each] for each in durations) + more

    seconds.__doc__ = promise
    return seconds


SUCCEEDED = Expected((1, 1), bound("session timeout + 1 s", "session_timeout"))
"""The leader is gone without a word, and a standby takes over."""
