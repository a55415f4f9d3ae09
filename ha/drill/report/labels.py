"""Where texts go so that none lies on another."""

from collections.abc import Sequence
from dataclasses import dataclass

from ha.drill.report.text import width

_BETWEEN = 8
"""Pixels that stay free between two texts of one row."""


@dataclass(frozen=True, slots=True)
class Label:
    """A text that belongs to a place on the time axis.

    Attributes:
        x: of the place.
        text: one line.
        left: where the text begins.
        right: where it ends at most.
    """

    x: float
    text: str
    left: float
    right: float

    @classmethod
    def after(cls, x: float, text: str, size: float, limit: float) -> "Label":
        """A text that begins at its place, or further left if it would go beyond the limit."""
        wide = width(text, size)
        left = min(x, limit - wide)
        return cls(x, text, left, left + wide)

    @classmethod
    def around(cls, x: float, text: str, size: float, limits: tuple[float, float]) -> "Label":
        """A text whose middle is at its place, or as near to it as the limits allow."""
        wide = width(text, size)
        left = max(min(x - wide / 2, limits[1] - wide), limits[0])
        return cls(x, text, left, left + wide)

    def meets(self, other: "Label") -> bool:
        """Return whether both have no room in one row."""
        return self.left < other.right + _BETWEEN and other.left < self.right + _BETWEEN


def stagger(labels: Sequence[Label], most: int) -> list[tuple[Label, int]]:
    """Distribute texts over rows.

    Those on the right come first, at the bottom: then the line from a text down to its place crosses no text, because
    all that is below it begins further right.

    Args:
        labels: in any order.
        most: rows there may be; what has no room in them is left out.

    Returns:
        Each text with its row, 0 is the lowest.
    """
    rows: list[list[Label]] = []
    placed = []
    for label in sorted(labels, key=lambda each: -each.x):
        row = next((row for row, others in enumerate(rows) if not any(map(label.meets, others))), len(rows))
        # Nor may it sink below a text that it would have to cross on the way: a row above all that it meets.
        row = max([row, *(1 + n for n, others in enumerate(rows) if any(map(label.meets, others)))])
        if row < most:
            if row == len(rows):
                rows.append([])
            rows[row].append(label)
            placed.append((label, row))
    return placed


def choose(labels: Sequence[Label]) -> list[Label]:
    """Return those that have room in one row: each of them, the important ones first, unless another is in its way."""
    chosen: list[Label] = []
    for label in labels:
        if not any(map(label.meets, chosen)):
            chosen.append(label)
    return chosen
