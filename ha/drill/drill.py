"""A drill: what is broken, and what may come of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ha.drill.ground import Ability

if TYPE_CHECKING:
    from ha.drill.stage import Stage

Act = Callable[["Stage"], None]


@dataclass(frozen=True)
class Expected:
    """What may come of a drill, besides what must be true of each.

    Attributes:
        changes: how many other leaders there may be, at least and at most: often none.
        recovery: seconds from the fault to the next grant, by the durations in force; None if nobody takes over. Among
            these is ``outage``, which is how long the first fault really was: servers need their time to come back.
        blind: whether lookups may fail while something is broken: true only if HDFS is out of reach, and ZooKeeper
            is too or holds no record.
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
        act: breaks something and mends it, on a stage where all is well.
        expected: what may come of it.
        needs: abilities of the ground.
        settings: durations that differ from :data:`DURATIONS`, in seconds.
        interval: seconds between the beginnings of two batches of the job; 0: as soon as there is something to do.
        dwell: seconds that a batch of the job takes at least.
        compared: whether a second job counts the same input on a quiet cluster, to compare what both have written.
        agent: whether all readers are on one host, with an agent, which is begun before the contenders.
        peers: whether jobs that others guard are put to the same test.
        quick: whether it is in the short selection.
    """

    name: str
    title: str
    group: str
    act: Act
    expected: Expected = Expected()
    needs: frozenset[Ability] = frozenset()
    settings: Mapping[str, float] = field(default_factory=dict)
    interval: float = 0.5
    dwell: float = 0.0
    compared: bool = False
    agent: bool = False
    peers: bool = False
    quick: bool = False


DURATIONS = {"session_timeout": 6.0, "short_ttl": 6.0, "long_ttl": 60.0, "hand_over": 2.0, "stop_grace": 3.0}
"""Shorter than by default where a drill would only have to wait, in seconds."""


def changed(name: str, *durations: str, more: float = 1.0) -> Callable[[Mapping[str, float]], float]:
    """Return a bound: the sum of some durations, and ``more`` seconds; ``name`` says which promise that is."""

    def bound(settings: Mapping[str, float]) -> float:
        return sum(settings[each] for each in durations) + more

    bound.__doc__ = name
    return bound
