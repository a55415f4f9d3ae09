"""Highest: the highest number that had been told by some time; what begins after that may not tell a lower one."""

from bisect import bisect_right
from typing import Generic, TypeVar

T = TypeVar("T")


class Highest(Generic[T]):
    """Numbers, each with whoever told it, in the order in which that had ended."""

    def __init__(self) -> None:
        """Begin with none."""
        self._ends: list[float] = []
        self._highest: list[tuple[int, T]] = []  # when each of these had ended

    def before(self, at: float) -> tuple[int, T] | None:
        """Return the highest one that had ended by then. Those that went on beside it say nothing."""
        ended = bisect_right(self._ends, at)
        return self._highest[ended - 1] if ended else None

    def add(self, ended: float, number: int, teller: T) -> None:
        """Add one that has ended after the others."""
        known = self._highest[-1] if self._highest else None
        self._ends.append(ended)
        self._highest.append(known if known is not None and known[0] >= number else (number, teller))
