"""Charts of figures, drawn with matplotlib: dots, shares and curves, as SVG documents."""

import io
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.figures import text
from benchmarks.result import Picture

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

WIDTH_IN, ROW_IN, PLOT_IN, AROUND_IN = 9.6, 0.28, 3.2, 1.0
"""Inches: width of a picture; heights of a row of dots, of a plot, and of title, axis and legend."""

MAX_POINTS = 400  # Points of one curve of shares: more cannot be told apart


@contextmanager
def style() -> Iterator[None]:
    """Set the looks of figures, while they are made and while they are drawn; also a decorator."""
    with mpl.rc_context(_STYLE):
        yield


def dotted(name: str, title: str, unit: str, series: Mapping[str, Sequence[float]], *, log: bool = False) -> Picture:
    return Picture(name, title, dots(title, unit, series, log=log))


@style()
def dots(title: str, unit: str, series: Mapping[str, Sequence[float]], *, log: bool = False) -> str:
    """Draw each value as a dot in the row of its name, and the median as a stroke; suits some dozens of values."""
    figure, ax = _rows(title, unit, list(series), [value for values in series.values() for value in values], log)
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        finite = [value for value in values if math.isfinite(value)]
        places = [number + 0.12 * (place % 3 - 1) for place in range(len(finite))]  # keeps equal values apart
        ax.plot(finite, places, "o", color=colour, alpha=0.6, markersize=5, gid=f"dots {name}")
        middle = sorted(values)[len(values) // 2] if values else math.inf
        if math.isfinite(middle):
            ax.vlines(middle, number - 0.42, number + 0.42, color=colour, linewidth=2, gid=f"median {name}")
        if endless := len(values) - len(finite):
            place = (1.01, number)
            ax.annotate(f"{endless} never", place, xycoords=("axes fraction", "data"), verticalalignment="center")
    return svg(figure, title)


@style()
def shares(title: str, unit: str, series: Mapping[str, Sequence[float]], *, log: bool = False) -> str:
    """Draw the share of all values that are at most each number (an ECDF); suits many values."""
    finite = {name: sorted(value for value in values if math.isfinite(value)) for name, values in series.items()}
    figure, ax = _plot(title, unit)
    _scale(ax, [value for values in finite.values() for value in values], log)
    for (name, values), colour in zip(finite.items(), cycle(COLOURS), strict=False):
        ranks = sorted({math.ceil(len(values) * part / MAX_POINTS) for part in range(MAX_POINTS + 1)} - {0})
        xs = [values[rank - 1] for rank in ranks]
        ys = [0.0, *(100 * rank / len(series[name]) for rank in ranks)]
        begin, end = ax.get_xlim()
        ax.step([begin, *xs, end], [*ys, ys[-1]], where="post", color=colour, label=name)
    ax.set(ylim=(0, 102), ylabel="% of all")
    _legend(figure, len(series))
    return svg(figure, title)


@style()
def curves(
    title: str, unit: str, lines: Mapping[str, Sequence[float]], zero: int, *, axis: str = "seconds", width: int = 1
) -> str:
    """Draw one value for each second, or for each so many of something else, as steps."""
    figure, ax = _plot(title, axis)
    for (name, values), colour in zip(lines.items(), cycle(COLOURS), strict=False):
        edges = [width * (number - zero) for number in range(len(values) + 1)]
        ax.stairs(list(values), edges, baseline=None, color=colour, linewidth=1.5, label=name)
    ax.axvline(0, color=FAINT, linewidth=1)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(unit)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    _legend(figure, len(lines))
    return svg(figure, title)


def _rows(title: str, unit: str, names: Sequence[str], values: Iterable[float], log: bool) -> tuple[Figure, Axes]:
    """Return a figure with one row for each name; the first is at the top."""
    figure = Figure(figsize=(WIDTH_IN, ROW_IN * len(names) + AROUND_IN), layout="constrained")
    ax = figure.add_subplot()
    ax.set_title(title)
    ax.set(ylim=(len(names) - 0.4, -0.6), yticks=range(len(names)), xlabel=unit)
    ax.set_yticklabels(names, color=INK)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    _scale(ax, values, log)
    return figure, ax


def _plot(title: str, unit: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_IN, PLOT_IN + AROUND_IN), layout="constrained")
    ax = figure.add_subplot()
    ax.set_title(title)
    ax.set_xlabel(unit)
    ax.grid(axis="both")
    return figure, ax


def _scale(ax: Axes, values: Iterable[float], log: bool) -> None:
    """Scale the axis for these numbers: from 0, or between powers of ten."""
    shown = [value for value in values if math.isfinite(value)] or [1.0]
    if log:
        if min(shown) <= 0:
            raise ValueError(f"A logarithmic axis cannot show {min(shown):g}.")
        low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
        ax.set_xscale("log")
        ax.set_xlim(10.0**low, 10.0 ** max(high, low + 1))
    else:
        ax.set_xlim(0, (max(shown) or 1.0) * 1.05)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def _legend(figure: Figure, names: int) -> None:
    if names:
        figure.legend(loc="outside lower left", ncols=min(names, 3), frameon=False)


def svg(figure: Figure, says: str) -> str:
    """Return the figure as an SVG document, which may also stand in a page."""
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
