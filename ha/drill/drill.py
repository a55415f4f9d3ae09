"""Drill: what breaks, and what may come of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ha.drill.environment import Ability
from ha.drill.fixture import Fixture, Setup

Action = Callable[[Fixture], None]
"""Breaks something and mends it, on a fixture where all is well."""


@dataclass(frozen=True)
class Expected:
    """Expected outcome of a drill, besides the conditions of every drill.

    Attributes:
        changes: least and greatest number of further leaders.
        recovery: seconds from the fault to the next grant, computed from the durations in force; None if nobody takes
            over. The durations include ``outage``, the true length of the first fault: servers need time to come back.
        blind: whether lookups may fail during a fault. True only if HDFS is out of reach, and ZooKeeper is out of reach
            too or holds no record.
    """

    changes: tuple[int, int] = (0, 0)
    recovery: Callable[[Mapping[str, float]], float] | None = None
    blind: bool = False


@dataclass(frozen=True)
class Drill:
    """One drill.

    Attributes:
        name: on the command line.
        title: what it does, in one sentence.
        group: see :class:`ha.drill.outcome.Outcome`.
        action: breaks something and mends it.
        expected: what may come of it.
        needs: abilities that the environment must have.
        setup: how the job runs.
        compared: whether a second job counts the same input on a quiet cluster, to compare what both have written.
        baselines: whether baselines take part in the drill as well.
        quick: whether the short selection has it.
    """

    name: str
    title: str
    group: str
    action: Action
    expected: Expected = Expected()
    needs: frozenset[Ability] = frozenset()
    setup: Setup = field(default_factory=Setup)
    compared: bool = False
    baselines: bool = False
    quick: bool = False


def bound(promise: str, *durations: str, more: float = 1.0) -> Callable[[Mapping[str, float]], float]:
    """Return a recovery bound: the sum of some durations and ``more`` seconds; ``promise`` describes it."""

    def seconds(settings: Mapping[str, float]) -> float:
        return sum(settings[each] for each in durations) + more

    seconds.__doc__ = promise
    return seconds
