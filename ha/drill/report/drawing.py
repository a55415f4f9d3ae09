"""Drawing: figures of matplotlib, as SVG. The timelines of drills and the charts of benchmarks are made with it."""

import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#4d4d4d", "#56b4e9")
"""After Okabe and Ito: colours that the colour-blind can tell apart."""

INK, FAINT, GRID = "#1f2328", "#59636e", "#d8dee4"

_STYLE: Any = {
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "legend.frameon": False,
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "hybrid-ha",  # the same figure gives the same file
    "text.color": INK,
    "text.parse_math": False,  # a name with dollars is a name
    "xtick.color": FAINT,
    "ytick.color": FAINT,
}
_DOCUMENT_HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_PLACES = re.compile(r'(?<= )(?:d|x|y)="[^"<>]*"')
_DIGITS = re.compile(r"\d+\.\d+")
_FONTS = re.compile(r"font-family: 'DejaVu Sans'[^;\"]*")
_UNTURNED = re.compile(r' transform="rotate\(-0 [^"]*"')


@contextmanager
def style() -> Iterator[None]:
    """Set the looks of figures, while they are made and while they are drawn; also a decorator."""
    with mpl.rc_context(_STYLE):
        yield


def bars(ax: Axes, spans: Iterable[tuple[float, float]], y: float, thickness: float, colour: str, kind: str) -> None:
    """Draw horizontal bars of one colour as a single shape.

    Args:
        ax: to draw on.
        spans: beginning and end of each bar, in seconds.
        y: of their middle.
        thickness: in points.
        colour: of all.
        kind: id of the shape.
    """
    vertices = [(x, y) for span in spans for x in span]
    if vertices:
        path = Path(vertices, [Path.MOVETO, Path.LINETO] * (len(vertices) // 2))
        ax.add_patch(PathPatch(path, fill=False, edgecolor=colour, linewidth=thickness, capstyle="butt", gid=kind))


def fitted(text: str, room: float, size: float) -> str:
    """Return a text that fits: its middle is left out, since names differ at their ends.

    Args:
        text: one line.
        room: points that it may take.
        size: of the font, in points.
    """
    if _width(text, size) <= room:
        return text
    for characters in range(min(len(text) - 1, int(room / size * 4)), 0, -1):
        tail = characters // 3
        short = text[: characters - tail].rstrip() + "…" + text[len(text) - tail :].lstrip()
        if _width(short, size) <= room:
            return short
    return ""


def _width(text: str, size: float) -> float:
    with warnings.catch_warnings(action="ignore"):  # a character that the font does not have is a box
        return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0])


def svg(figure: Figure, says: str) -> str:
    """Return the figure as an SVG document, which may also stand in a page.

    Args:
        figure: to be drawn.
        says: what a screen reader says instead.
    """
    written = io.StringIO()
    with style(), warnings.catch_warnings(action="ignore"):
        figure.savefig(written, format="svg", metadata={"Date": None, "Title": says})
    body = _METADATA.sub("", _DOCUMENT_HEAD.sub("", written.getvalue()))
    return _shortened(body).replace("<svg ", '<svg role="img" ', 1)


def _shortened(body: str) -> str:
    """Return the document with a tenth of a point as its smallest step, and without what is the same everywhere."""
    body = _PLACES.sub(_shorter, body)
    return re.sub(r">\s+<", "><", _UNTURNED.sub("", _FONTS.sub("font-family: sans-serif", body)))


def _shorter(found: re.Match[str]) -> str:
    places = _DIGITS.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), " ".join(found[0].split()))
    straight = not {"C", "Q"} & set(places)
    return places.replace(" L ", " ") if straight else places  # a line is what follows a beginning anyway
