"""What is said of the answers that one contestant got in one outage. No I/O."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.availability.asking import Asked

SOON = 0.1
LATE = 2.0
"""Seconds within which a lookup should be answered; the second is the time-out that a client has by default."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One outage, as it was; all times in boot-clock seconds.

    Attributes:
        name: what was done to which store.
        began: when.
        ended: when the store served again.
        watched: until when lookups count: it takes readers a while to find a store again.
        moved: when another leader had taken over; infinite if none had.
        epoch: of that leader.
    """

    name: str
    began: float
    ended: float
    watched: float
    moved: float = math.inf
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one contestant fared.

    Attributes:
        asked: lookups that were to be made from the beginning of the outage until the end of watching.
        soon: share of them that was answered within ``SOON``.
        late: share of them that was answered within ``LATE``.
        longest: seconds for the slowest answer; infinite if one never came.
        misled: seconds after the change of leader until which a lookup, whenever it was answered, named the old one.
    """

    asked: int
    soon: float
    late: float
    longest: float
    misled: float


def counted(trouble: Trouble, asked: Sequence[Asked]) -> list[Asked]:
    """Return the lookups that count."""
    return [each for each in asked if trouble.began <= each[0] < trouble.watched]


def judge(trouble: Trouble, asked: Sequence[Asked]) -> Verdict:
    """Judge what came of all lookups.

    Raises:
        ValueError: none was made in the outage.
    """
    during = counted(trouble, asked)
    if not during:
        raise ValueError(f"Nobody asked anything during this outage: {trouble.name}.")
    seconds = [math.inf if each is None else each for _, each, _ in during]
    old = [due - trouble.moved for due, _, epoch in during if due >= trouble.moved and 0 < epoch < trouble.epoch]
    return Verdict(
        asked=len(during),
        soon=sum(each <= SOON for each in seconds) / len(during),
        late=sum(each <= LATE for each in seconds) / len(during),
        longest=max(seconds),
        misled=max(old, default=0.0),
    )
