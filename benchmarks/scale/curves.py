"""A picture of what is asked of a store over time: one line for each way to do it, written as SVG by hand."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from math import floor, log10

WIDTH, HEIGHT = 760, 300
LEFT, TOP, RIGHT, BOTTOM = 70, 34, 16, 40
COLOURS = ("#1b6ca8", "#c2452d", "#7a5195", "#3a7d44", "#b8860b")
MARKS = 5
"""On the vertical axis, about."""


def curves(title: str, lines: Mapping[str, Sequence[float]], zero: int, unit: str) -> str:
    """Draw them.

    Args:
        title: what a screen reader says.
        lines: one value for each second, by name.
        zero: the second at which something happens.
        unit: of the values.

    Returns:
        An SVG document.
    """
    longest = max(len(values) for values in lines.values())
    step = _step(max(max(values) for values in lines.values()))
    top = step * (floor(max(max(values) for values in lines.values()) / step) + 1)
    root = ET.Element("svg", _attributes(xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {HEIGHT}"))
    root.attrib |= {"role": "img", "aria-label": title, "font-family": "sans-serif", "font-size": "11"}
    ET.SubElement(root, "rect", _attributes(width=WIDTH, height=HEIGHT, fill="white"))

    def x(second: float) -> float:
        return LEFT + second * (WIDTH - LEFT - RIGHT) / longest

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM) / top

    for mark in range(round(top / step) + 1):
        height = y(mark * step)
        _line(root, (LEFT, height), (WIDTH - RIGHT, height), "#dddddd")
        _text(root, LEFT - 6, height + 4, f"{mark * step:,.0f}", "end")
    for second in range(zero % 15, longest, 15):
        _text(root, x(second), HEIGHT - BOTTOM + 16, f"{second - zero} s", "middle")
    _line(root, (x(zero), TOP), (x(zero), HEIGHT - BOTTOM), "#888888")
    _text(root, LEFT, HEIGHT - 6, unit, "start")
    place: float = LEFT
    for (name, values), colour in zip(lines.items(), COLOURS, strict=False):
        # A second is as wide as it lasts: what was asked within it is level.
        points = [(x(at), y(value)) for second, value in enumerate(values) for at in (second, second + 1)]
        drawn = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        ET.SubElement(root, "polyline", _attributes(points=drawn, fill="none", stroke=colour) | {"stroke-width": "1.6"})
        ET.SubElement(root, "rect", _attributes(x=place, y=10, width=10, height=10, fill=colour))
        _text(root, place + 14, 19, name, "start")
        place += 34 + 6.2 * len(name)
    return ET.tostring(root, encoding="unicode")


def _step(highest: float) -> float:
    """A round distance between two marks."""
    if highest <= 0:
        return 1.0
    rough = highest / MARKS
    power = 10.0 ** floor(log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def _line(root: ET.Element, begin: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    (x1, y1), (x2, y2) = begin, end
    ET.SubElement(root, "line", _attributes(x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour))


def _text(root: ET.Element, x: float, y: float, text: str, anchor: str) -> None:
    ET.SubElement(root, "text", _attributes(x=x, y=y, fill="#333333") | {"text-anchor": anchor}).text = text


def _attributes(**values: object) -> dict[str, str]:
    return {name: f"{value:.1f}" if isinstance(value, float) else str(value) for name, value in values.items()}
