"""Pictures of figures, as SVG files that can be read on a light and on a dark page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.figures import text
from ha.drill.report.canvas import Box, Canvas

WIDTH = 960.0
LEFT = 320.0
"""Pixels for the names of bars and dots: some 45 letters."""

RIGHT = 860.0
"""Right of it stand the figures of bars."""

ROW = 26.0
TOP = 44.0
BELOW = 52.0
"""Pixels above what is drawn, for the title, and below, for the axis."""

PLOT = 300.0
"""Pixels of height of a plot of shares."""

LEGEND = 20.0

STEPS = (1, 2, 5, 10)
MOST_TICKS = 8

COLOURS = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#e69f00"),
    ("#007a5a", "#2fc797"),
    ("#a3407f", "#e08fc0"),
    ("#6b6b00", "#d8d03c"),
    ("#4d4d4d", "#b8b8b8"),
)
"""Pairs for a light and a dark page, after Okabe and Ito, whose colours the colour-blind can tell apart."""

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:var(--ink)}"
    ".title{font-weight:600;font-size:15px}.name{text-anchor:end}.tick{text-anchor:middle;fill:var(--faint)}"
    ".share{text-anchor:end;fill:var(--faint)}.unit{text-anchor:middle}"
    ".page{fill:var(--page)}.grid{stroke:var(--grid);fill:none}.axis{stroke:var(--faint);fill:none}"
    ".target{stroke:var(--ink);stroke-dasharray:5 4;fill:none}.curve{fill:none;stroke-width:2}"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from left to right.

    Attributes:
        low: the number at its beginning.
        high: the number at its end; more than ``low``.
        log: whether each tenfold takes the same way; then ``low`` is more than 0.
    """

    low: float
    high: float
    log: bool

    def x(self, value: float) -> float:
        """Return where a number is, in pixels; what is beyond an end is at that end."""
        inside = min(max(value, self.low), self.high)
        low, high, at = (math.log10(n) if self.log else n for n in (self.low, self.high, inside))
        return LEFT + (at - low) / (high - low) * (RIGHT - LEFT)

    def ticks(self) -> list[float]:
        """Return the round numbers on it."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            every = max(1, math.ceil((last - first) / MOST_TICKS))
            return [10.0**power for power in range(first, last + 1, every)]
        step = _step(self.high - self.low)
        return [number * step for number in range(math.ceil(self.low / step), int(self.high / step + 1e-9) + 1)]


def scale(values: Iterable[float], *, log: bool = False) -> Scale:
    """Return an axis with round ends that shows all of these numbers: from 0 on, unless it is logarithmic.

    Raises:
        ValueError: a logarithmic axis cannot show 0.
    """
    shown = [value for value in values if math.isfinite(value)] or [1.0]
    highest = max(shown)
    if log:
        if min(shown) <= 0:
            raise ValueError(f"A logarithmic axis cannot show {min(shown):g}.")
        low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(highest))
        return Scale(10.0**low, 10.0 ** max(high, low + 1), log=True)
    step = _step(highest or 1.0)
    return Scale(0.0, step * math.ceil((highest or 1.0) / step - 1e-9), log=False)


def bars(title: str, unit: str, values: Mapping[str, float], *, target: float | None = None, log: bool = False) -> str:
    """Draw one bar for each name, longest for the highest number, with a line where the target is.

    Args:
        title: of the picture.
        unit: of the numbers.
        values: by name, in the order in which they are shown.
        target: None for no line.
        log: whether the axis is logarithmic; its bars then begin at a power of ten.
    """
    axis = scale([*values.values(), *([target] if target is not None else [])], log=log)
    canvas = _begin(title, TOP + ROW * len(values) + BELOW)
    bottom = TOP + ROW * len(values)
    _axis(canvas, axis, unit, bottom)
    for number, (name, value) in enumerate(values.items()):
        y = TOP + ROW * number
        canvas.rect(Box(LEFT, y + 4, axis.x(value) - LEFT, ROW - 8), "fill0", f"{name}: {text(value)} {unit}")
        canvas.text(LEFT - 8, y + 17, name, "name")
        canvas.text(axis.x(value) + 6, y + 17, text(value))
    if target is not None:
        canvas.line(axis.x(target), TOP - 6, axis.x(target), bottom, "target")
        canvas.text(axis.x(target) + 4, TOP - 8, f"target {text(target)}")
    return _finished(canvas)


def dots(title: str, unit: str, series: Mapping[str, Sequence[float]], *, log: bool = False) -> str:
    """Draw every single value as a dot in the row of its name, and the median as a stroke: for some dozens of values.

    A value that is infinite is at the right end, and its row says how many are.

    Args:
        title: of the picture.
        unit: of the numbers.
        series: values by name.
        log: whether the axis is logarithmic.
    """
    axis = scale((value for values in series.values() for value in values), log=log)
    bottom = TOP + ROW * len(series)
    canvas = _begin(title, bottom + BELOW)
    _axis(canvas, axis, unit, bottom)
    for number, (name, values) in enumerate(series.items()):
        y = TOP + ROW * number + ROW / 2
        kind = f"dot{number % len(COLOURS)}"
        canvas.text(LEFT - 8, y + 4, name, "name")
        for place, value in enumerate(values):
            x, off = axis.x(value), 3.0 * (place % 3 - 1)  # so that equal ones are not one
            canvas.path(f"M{x - 3:.1f} {y + off:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", kind, f"{text(value)} {unit}")
        if values:
            middle = axis.x(sorted(values)[len(values) // 2])
            canvas.line(middle, y - 11, middle, y + 11, f"curve line{number % len(COLOURS)}")
        if endless := sum(math.isinf(value) for value in values):
            canvas.text(RIGHT + 6, y + 4, f"{endless} never")
    return _finished(canvas)


def shares(title: str, unit: str, series: Mapping[str, Sequence[float]], *, log: bool = False) -> str:
    """Draw which share of all values is not above each number: for many values: an ECDF.

    A value that is infinite counts among all and is nowhere, so that its curve ends below 100 %.

    Args:
        title: of the picture.
        unit: of the numbers.
        series: values by name; each at least one.
        log: whether the axis is logarithmic.
    """
    axis = scale((value for values in series.values() for value in values), log=log)
    bottom = TOP + PLOT
    canvas = _begin(title, bottom + BELOW + LEGEND * len(series))
    _axis(canvas, axis, unit, bottom)
    for quarter in range(5):
        y = bottom - PLOT * quarter / 4
        canvas.line(LEFT, y, RIGHT, y, "grid")
        canvas.text(LEFT - 8, y + 4, f"{25 * quarter} %", "share")
    for number, (name, values) in enumerate(series.items()):
        canvas.path(_curve(axis, values, bottom), f"curve line{number % len(COLOURS)}", name)
        y = bottom + BELOW + LEGEND * number
        canvas.rect(Box(LEFT, y - 10, 18, 10), f"fill{number % len(COLOURS)}")
        canvas.text(LEFT + 26, y, name)
    return _finished(canvas)


def _curve(axis: Scale, values: Sequence[float], bottom: float) -> str:
    """Steps, and of those within one pixel only the last."""
    ordered = sorted(value for value in values if math.isfinite(value))
    places = [(round(axis.x(value)), rank / len(values)) for rank, value in enumerate(ordered, 1)]
    kept = [one for one, after in pairwise([*places, (-1, 0.0)]) if one[0] != after[0]]
    steps = "".join(f"H{x}V{bottom - PLOT * share:.1f}" for x, share in kept)
    return f"M{LEFT:.0f} {bottom:.0f}{steps}H{RIGHT:.0f}"


def _step(span: float) -> float:
    """The least round number of which the span holds few."""
    rough = span / MOST_TICKS
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in STEPS if step * power >= rough * (1 - 1e-9))


def _axis(canvas: Canvas, axis: Scale, unit: str, bottom: float) -> None:
    for tick in axis.ticks():
        canvas.line(axis.x(tick), TOP, axis.x(tick), bottom, "grid")
        canvas.text(axis.x(tick), bottom + 16, text(tick), "tick")
    canvas.line(LEFT, bottom, RIGHT, bottom, "axis")
    canvas.text((LEFT + RIGHT) / 2, bottom + 34, unit, "unit")


def _begin(title: str, height: float) -> Canvas:
    canvas = Canvas(WIDTH, height, title)
    canvas.rect(Box(0, 0, WIDTH, height), "page")
    canvas.text(12, 22, title, "title")
    return canvas


def _finished(canvas: Canvas) -> str:
    """Make a document of it: with a name space, and with its own colours, since it is on a page of its own."""
    light, dark = (
        "".join(
            f".fill{n},.dot{n}{{fill:{pair[side]}}}.dot{n}{{fill-opacity:.7}}.line{n}{{stroke:{pair[side]}}}"
            for n, pair in enumerate(COLOURS)
        )
        for side in (0, 1)
    )
    style = (
        f"<style>svg{{--page:#fff;--ink:#1f2328;--faint:#59636e;--grid:#d8dee4}}{_STYLE}{light}"
        "@media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--faint:#9da7b3;--grid:#30363d}"
        f"{dark}}}</style>"
    )
    head, _, body = str(canvas).partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg">{style}{body}'
