"""Reader of drawn pictures."""

import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314  # our own


def is_svg(svg: str) -> bool:
    return ET.fromstring(svg).tag == f"{SVG}svg" and bool(texts(svg))  # noqa: S314  # our own
