"""A picture, read back: what is drawn where, and how much room its texts take at most."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations

from ha.drill.report.frame import SMALL, TEXT
from ha.drill.report.text import width

SMALL_TEXTS = {"sum", "small", "tick", "epoch"}


@dataclass(frozen=True)
class Drawn:
    """An SVG element of a timeline."""

    svg: ET.Element

    @classmethod
    def parse(cls, svg: str) -> "Drawn":
        return cls(ET.fromstring(svg))  # noqa: S314  # our own

    def boxes(self, kind: str) -> list[dict[str, float]]:
        """Rectangles of a class, in the order in which they were drawn."""
        found = [each for each in self.svg.iter("rect") if each.get("class") == kind]
        return [{name: float(each.attrib[name]) for name in ("x", "y", "width", "height")} for each in found]

    def titles(self, kind: str) -> list[str]:
        """What a pointer is told that rests on an element of a class."""
        return [each.findtext("title") or "" for each in self.svg.iter() if each.get("class") == kind]

    def texts(self, kind: str = "") -> list[str]:
        return [each.text or "" for each in self.svg.iter("text") if not kind or each.get("class") == kind]

    def text_boxes(self) -> list[tuple[str, float, float, float, float]]:
        """Each text with left, top, right and bottom."""
        found = []
        for each in self.svg.iter("text"):
            text, kind = each.text or "", each.get("class", "")
            size = SMALL if kind in SMALL_TEXTS else TEXT
            wide, x, y = width(text, size), float(each.attrib["x"]), float(each.attrib["y"])
            left = x - wide / 2 if kind == "tick" else x
            found.append((text, left, y - 0.75 * size, left + wide, y + 0.2 * size))
        return found

    def collisions(self) -> list[tuple[str, str]]:
        """Texts that lie on each other."""
        return [
            (one[0], other[0])
            for one, other in combinations(self.text_boxes(), 2)
            if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
        ]

    def outside(self) -> list[str]:
        """Texts that go beyond the picture."""
        _, _, wide, high = map(float, self.svg.attrib["viewBox"].split())
        return [
            text
            for text, left, top, right, bottom in self.text_boxes()
            if left < 0 or top < 0 or right > wide or bottom > high
        ]
