"""What each reader was told, gathered into as many columns as there are pixels to show it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ha.drill.report.frame import LEFT, RIGHT, Axis
from ha.drill.report.spans import Span, union
from ha.history.events import Event, LookedUp

COLUMN = 3
"""Pixels of one column."""

ANSWERS = ("snapshot", "zookeeper", "hdfs", "stale", "other")
"""Kinds of answers that name a leader, by their source; a stale one is the last known, whatever its source was."""

MISSES = ("none", "unreachable")
"""Outcomes that name no leader: there is none, or no store answered."""


@dataclass(slots=True)
class Miss:
    """Lookups in a row that named no leader."""

    outcome: str
    begins: float
    ends: float
    lookups: int = 1


@dataclass(slots=True)
class Looks:
    """All lookups of one reader.

    Attributes:
        reader: its name.
        columns: how many answers of each kind arrived, by number of the column.
        counts: lookups by kind of answer or outcome.
        slowest: the lookup that took longest, of each kind.
        misses: what named no leader, in order; those of one outcome that touch each other are one.
        slow: when lookups were under way that took more than a column.
    """

    reader: str
    columns: dict[int, Counter[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, LookedUp] = field(default_factory=dict)
    misses: list[Miss] = field(default_factory=list)
    slow: list[Span] = field(default_factory=list)

    @property
    def worst(self) -> LookedUp:
        """The lookup that took longest of all."""
        return max(self.slowest.values(), key=took)


def looks(events: Sequence[Event], axis: Axis) -> list[Looks]:
    """Gather the lookups of every reader, in the order of the readers' names.

    Args:
        events: in any order; lookups that ended outside the axis are not counted.
        axis: says how long a column is.
    """
    column = COLUMN * axis.pixel
    found: dict[str, Looks] = {}
    lookups = (each for each in events if isinstance(each, LookedUp) and axis.shows(each.ended))
    for lookup in sorted(lookups, key=lambda each: each.ended):
        own = found.setdefault(lookup.reader, Looks(lookup.reader))
        kind = _kind(lookup)
        own.counts[kind] += 1
        if kind not in own.slowest or took(lookup) > took(own.slowest[kind]):
            own.slowest[kind] = lookup
        if took(lookup) > column:
            own.slow.append((lookup.at, lookup.ended))
        if kind in MISSES:
            _missed(own.misses, kind, lookup, column)
        else:
            number = min(int((lookup.ended - axis.began) / column), (RIGHT - LEFT) // COLUMN)
            own.columns.setdefault(number, Counter())[kind] += 1
    for own in found.values():
        own.slow = union(own.slow)
    return sorted(found.values(), key=lambda each: each.reader)


def _missed(misses: list[Miss], kind: str, lookup: LookedUp, column: float) -> None:
    last = misses[-1] if misses else None
    if last is not None and last.outcome == kind and lookup.at <= last.ends + column:
        last.ends, last.lookups = lookup.ended, last.lookups + 1
    else:
        misses.append(Miss(kind, lookup.at, lookup.ended))


def _kind(lookup: LookedUp) -> str:
    if lookup.outcome in MISSES:
        return lookup.outcome
    if lookup.stale:
        return "stale"
    return lookup.source if lookup.source in ANSWERS else "other"


def took(lookup: LookedUp) -> float:
    """Return how many seconds a lookup took."""
    return lookup.ended - lookup.at
