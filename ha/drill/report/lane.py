"""What all lanes of a picture have in common: a name on the left, what it comes to on the right."""

from typing import Protocol

from ha.drill.report.canvas import Canvas
from ha.drill.report.frame import LEFT, MARGIN, RIGHT, SMALL, TEXT, WIDTH
from ha.drill.report.text import printable, shorten


class Lane(Protocol):
    """One horizontal strip of a picture.

    Attributes:
        height: in pixels.
    """

    height: float

    def draw(self, canvas: Canvas, top: float) -> None:
        """Draw it; ``top`` is where it begins."""


def name_lane(canvas: Canvas, top: float, name: str, *sums: str, title: str = "") -> None:
    """Write what is left and right of a lane's time axis.

    Args:
        canvas: to draw on.
        top: of the lane.
        name: of the lane, shortened if it has to be.
        sums: what the lane comes to, at most two lines; empty ones are left out.
        title: the whole name, if ``name`` is not that already.
    """
    name, whole = printable(name), printable(title or name)
    short = shorten(name, LEFT - 2 * MARGIN, TEXT)
    canvas.text(MARGIN, top + 19, short, "name", "" if short == whole else whole)
    for line, text in enumerate(filter(None, sums)):
        short = shorten(text, WIDTH - RIGHT - 2 * MARGIN, SMALL)
        canvas.text(RIGHT + MARGIN, top + 14 + 14 * line, short, "sum", "" if short == text else text)
