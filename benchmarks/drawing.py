"""Charts of figures, drawn with matplotlib: bars, dots, shares and curves, as SVG documents."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.figures import text
from ha.drill.report.drawing import COLOURS, FAINT, INK, style, svg

WIDTH_IN, ROW_IN, PLOT_IN, AROUND_IN = 9.6, 0.28, 3.2, 1.0
"""Inches: width of a picture; heights of a row of bars or dots, of a plot, and of title, axis and legend."""

MAX_POINTS = 400
"""Points of one curve of shares: more cannot be told apart."""


@style()
def bars(title: str, unit: str, values: Mapping[str, float], *, target: float | None = None, log: bool = False) -> str:
    """Draw one bar for each name, and a line where the target is.

    Args:
        title: of the picture.
        unit: of the numbers.
        values: by name, in the order shown.
        target: where the line is; None for no line.
        log: whether the axis is logarithmic.

    Raises:
        ValueError: a logarithmic axis cannot show 0.
    """
    figure, ax = _rows(title, unit, list(values), [*values.values(), *([target] if target is not None else [])], log)
    drawn = ax.barh(range(len(values)), list(values.values()), height=0.65, color=COLOURS[0], gid="bar")
    ax.bar_label(drawn, labels=[text(value) for value in values.values()], padding=4)
    if target is not None:
        ax.axvline(target, color=INK, linestyle="--", linewidth=1, gid="target")
        ax.annotate(f"target {text(target)}", (target, -0.6), (3, 3), textcoords="offset points")
    return svg(figure, title)


@style()
def dots(title: str, unit: str, series: Mapping[str, Sequence[float]], *, log: bool = False) -> str:
    """Draw each value as a dot in the row of its name, and the median as a stroke; suits some dozens of values.

    Each row shows how many of its values are infinite.

    Args:
        title: of the picture.
        unit: of the numbers.
        series: values by name.
        log: whether the axis is logarithmic.

    Raises:
        ValueError: a logarithmic axis cannot show 0.
    """
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
    """Draw the share of all values that are at most each number (an ECDF); suits many values.

    An infinite value counts as one of all and is not drawn, so its curve ends below 100 %.

    Args:
        title: of the picture.
        unit: of the numbers.
        series: values by name, at least one each.
        log: whether the axis is logarithmic.

    Raises:
        ValueError: a logarithmic axis cannot show 0.
    """
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
    """Draw one value for each second, or for each so many of something else, as steps.

    Args:
        title: of the picture.
        unit: of the values.
        lines: the values, by name.
        zero: number of the value with the event, which is marked.
        axis: what there is a value for.
        width: for how many of these.
    """
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
    """Scale the axis for these numbers: from 0, or between powers of ten.

    Raises:
        ValueError: a logarithmic axis cannot show 0.
    """
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
