"""What a picture is drawn on: SVG elements whose looks are left to the page's style sheet."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import NamedTuple

from ha.drill.report.text import printable


class Box(NamedTuple):
    """A rectangle, in pixels."""

    x: float
    y: float
    width: float
    height: float


class Canvas:
    """A picture to be; ``class`` names are all that it says about colours, so that the page can be dark or light."""

    def __init__(self, width: float, height: float, says: str) -> None:
        """Begin an empty picture.

        Args:
            width: in pixels.
            height: in pixels.
            says: what a screen reader says instead.
        """
        self._root = ET.Element(
            "svg",
            {
                "class": "timeline",
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "role": "img",
                "aria-label": printable(says),
            },
        )

    def rect(self, box: Box, kind: str, title: str = "") -> None:
        """Draw a rectangle; the title is what a pointer that rests on it is told."""
        sides = {name: _number(side) for name, side in box._asdict().items()}
        self._add("rect", {**sides, "class": kind}, title)

    def rects(self, boxes: Iterable[Box], kind: str, title: str = "") -> None:
        """Draw many rectangles that look the same: a few bytes each, with one title for all."""
        steps = "".join(f"M{_number(x)} {_number(y)}h{_number(w)}v{_number(h)}h{_number(-w)}z" for x, y, w, h in boxes)
        if steps:
            self._add("path", {"class": kind, "d": steps}, title)

    def path(self, steps: str, kind: str, title: str = "") -> None:
        """Draw a path, written as SVG does."""
        self._add("path", {"class": kind, "d": steps}, title)

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        """Draw a straight line."""
        self.path(f"M{_number(x)} {_number(y)}L{_number(to_x)} {_number(to_y)}", kind)

    def text(self, x: float, y: float, text: str, kind: str = "", title: str = "") -> None:
        """Write a line of text; ``y`` is its base line, ``x`` its beginning unless its class says otherwise."""
        attributes = {"x": _number(x), "y": _number(y)}
        if kind:
            attributes["class"] = kind
        self._add("text", attributes, title).text = printable(text)

    def __str__(self) -> str:
        return ET.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, attributes: dict[str, str], title: str) -> ET.Element:
        element = ET.SubElement(self._root, tag, attributes)
        if title:
            ET.SubElement(element, "title").text = printable(title)
        return element


def _number(value: float) -> str:
    """A tenth of a pixel is enough."""
    return f"{value:.1f}".removesuffix(".0")
