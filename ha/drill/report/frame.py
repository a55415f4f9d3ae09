"""The frame of a picture: which pixels are what, and how seconds become pixels."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

WIDTH = 1200
"""Pixels of the whole picture; a page may scale it."""

LEFT, RIGHT = 140, 1000
"""Where the time axis begins and ends; left of it are the lanes' names, right of it what they come to."""

MARGIN = 10
"""Pixels between the picture's edge, or the axis, and a text."""

TEXT, SMALL = 13, 11.5
"""Sizes of the two fonts, in pixels."""

_MOST_TICKS = 12
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200)


@dataclass(frozen=True, slots=True)
class Axis:
    """The time axis.

    Attributes:
        began: what is its second 0, on the clock of the events.
        seconds: that it shows; more than 0.
    """

    began: float
    seconds: float

    @property
    def ends(self) -> float:
        """The last moment that is shown, on the clock of the events."""
        return self.began + self.seconds

    @property
    def pixel(self) -> float:
        """Seconds of one pixel."""
        return self.seconds / (RIGHT - LEFT)

    def x(self, at: float) -> float:
        """Return where a moment is; what is not shown is at the nearer end."""
        return LEFT + min(max(at - self.began, 0.0), self.seconds) / self.pixel

    def shows(self, at: float) -> bool:
        """Return whether a moment is on it."""
        return self.began <= at <= self.ends

    def ticks(self) -> Iterator[float]:
        """Yield round numbers of seconds since it began, from 0 on."""
        fitting = (step for step in _STEPS if self.seconds / step <= _MOST_TICKS)
        step = next(fitting, 10 ** math.ceil(math.log10(self.seconds / _MOST_TICKS)))
        for number in range(int(self.seconds / step + 1e-9) + 1):
            yield number * step
