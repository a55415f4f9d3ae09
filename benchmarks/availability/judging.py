"""Judge of the answers that one contestant got in one outage. No I/O."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.availability.asking import Asked

SOON = 0.1
LATE = 2.0  # Seconds within which a lookup should be answered; the second is a client's default time-out


@dataclass(frozen=True, slots=True)
class Trouble:
    """One outage, as it happened; all times are in boot-clock seconds."""

    name: str  # the fault and the store
    began: float  # its start
    ended: float  # when the store served again
    watched: float  # the last time at which lookups count; readers need a while to find a store again
    moved: float = math.inf  # when another leader had taken over; infinite if none had
    epoch: int = 0  # that leader's epoch


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one contestant in one outage."""

    asked: int  # number of lookups that were due between ``began`` and ``watched``
    soon: float  # share of them that were answered within ``SOON``
    late: float  # share of them that were answered within ``LATE``
    longest: float  # seconds for the slowest answer; infinite if one never came
    misled: float  # seconds from the change of leader to the due time of the last lookup that named the old one


def counted(trouble: Trouble, asked: Sequence[Asked]) -> list[Asked]:
    """Return the lookups that count."""
    return [each for each in asked if trouble.began <= each[0] < trouble.watched]


def judge(trouble: Trouble, asked: Sequence[Asked]) -> Verdict:
    """Judge the outcomes of all lookups."""
    during = counted(trouble, asked)
    if not during:
        raise ValueError(f"No lookup was made during this outage: {trouble.name}.")
    seconds = [math.inf if each is None else each for _, each, _ in during]
    old = [due - trouble.moved for due, _, epoch in during if due >= trouble.moved and 0 < epoch < trouble.epoch]
    return Verdict(
        asked=len(during),
        soon=sum(each <= SOON for each in seconds) / len(during),
        late=sum(each <= LATE for each in seconds) / len(during),
        longest=max(seconds),
        misled=max(old, default=0.0),
    )
