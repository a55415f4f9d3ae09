"""Pictures, read back."""

import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def parse(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314  # our own


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in parse(svg).iter(f"{SVG}text")]


def elements(svg: str, tag: str, kind: str) -> list[ET.Element]:
    return [each for each in parse(svg).iter(f"{SVG}{tag}") if kind in each.attrib.get("class", "").split()]


def is_svg(svg: str) -> bool:
    """Whether that is a document, with something in it."""
    return parse(svg).tag == f"{SVG}svg" and bool(texts(svg))
