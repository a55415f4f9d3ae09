"""What was broken, and when: bands over the whole height of a picture, with their names above them."""

from collections.abc import Sequence

from ha.drill.outcome import Span
from ha.drill.report.canvas import Box, Canvas
from ha.drill.report.figures import seconds
from ha.drill.report.frame import MARGIN, TEXT, WIDTH, Axis
from ha.drill.report.labels import Label, stagger
from ha.drill.report.text import printable, shorten, width

_ROW = 18
"""Pixels of one row of names."""

_MOST_ROWS = 7
"""Rows of names; more faults at once have only the titles of their bands."""

_LONGEST = 420
"""Pixels of one name."""

_INSTANT = 0.05
"""Seconds below which a fault has no length worth a word."""


class FaultBands:
    """All faults of one picture.

    Attributes:
        height: of the names, in pixels.
    """

    def __init__(self, axis: Axis, faults: Sequence[Span]) -> None:
        """Find out where the names go.

        Args:
            axis: of the picture.
            faults: in any order; those outside the axis are left out.
        """
        self._axis = axis
        self._faults = [each for each in faults if each.begins <= axis.ends and each.ends >= axis.began]
        labels = []
        for fault in self._faults:
            text = _says(fault, axis, _LONGEST)
            labels.append(Label.after(axis.x(fault.begins), text, TEXT, WIDTH - MARGIN))
        self._labels = stagger(labels, _MOST_ROWS)
        self.height = float(_ROW * max((1 + row for _, row in self._labels), default=0))

    def draw(self, canvas: Canvas, top: float, bottom: float) -> None:
        """Draw bands between two heights, and the names above the upper one."""
        for fault in self._faults:
            left, right = self._axis.x(fault.begins), self._axis.x(fault.ends)
            title = _says(fault, self._axis)
            canvas.rect(Box(left, top, max(right - left, 2), bottom - top), "fault", title)
            edges = [left, right] if right > left + 2 and fault.ends <= self._axis.ends else [left]
            for x in edges:
                canvas.line(x, top, x, bottom, "edge")
        for label, row in self._labels:
            canvas.line(label.x, top - _ROW * (row + 1) + 4, label.x, top, "edge")
        for label, row in self._labels:
            shift = 4 if label.left == label.x else 0
            canvas.text(label.left + shift, top - _ROW * row - 5, label.text, "broken")


def _says(fault: Span, axis: Axis, room: float = float("inf")) -> str:
    """A fault's name, shortened if it has to be, and how long it lasted."""
    lasts = fault.ends - fault.begins
    suffix = ", until the end" if fault.ends > axis.ends else "" if lasts < _INSTANT else f", {seconds(lasts)}"
    return shorten(printable(fault.what), room - width(suffix, TEXT), TEXT) + suffix
