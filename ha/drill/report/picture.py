"""Picture of one drill: who led, what was broken, what readers were told and which batches came, second by second."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ha.drill.outcome import Outcome, Span
from ha.drill.report.drawing import GRID, bars, fitted, style, svg
from ha.drill.report.figures import printable, seconds
from ha.drill.report.lanes import Lane, Window, lanes, window
from ha.history.events import Event

WIDTH_IN, LEFT_IN, RIGHT_IN = 12.0, 1.4, 2.2
"""Of the whole picture, of the names at its left and of the sums at its right, in inches."""

TOP_IN, LANE_IN, AXIS_IN, LINE_IN = 0.25, 0.36, 0.4, 0.19
"""Above the lanes, of one lane, of the axis of seconds, and of a line of text below it, in inches."""

POINTS = 72
"""In one inch."""

NAME_PT, SUM_PT = 9.0, 7.5
INSTANT_S = 0.05
"""A shorter fault has no length worth a word."""

MAX_FAULTS = 14
"""Faults that are listed; all are drawn."""

THINNEST = 0.0016
"""Least width of a box, as a part of the whole time: what was short must be seen as well."""

KINDS = {
    "leads": ("#0072b2", 0.4, 0.9, "believes to lead"),
    "lapsing": ("#9ecae1", 0.4, 0.9, "is gone, its belief still runs"),
    "runs": ("#4d4d4d", 0.15, 0.3, "its command runs"),
    "nobody": ("#d55e00", 0.2, 0.8, "no leader"),
    "two": ("#c00000", 0.2, 0.8, "two at once"),
    "snapshot": ("#009e73", 0.25, 0.42, "lookup answered by the snapshot"),
    "zookeeper": ("#56b4e9", 0.44, 0.61, "by ZooKeeper"),
    "hdfs": ("#e69f00", 0.63, 0.8, "by HDFS"),
    "stale": ("#cc79a7", 0.25, 0.8, "the last known leader, marked stale"),
    "other": ("#999999", 0.25, 0.8, "by an unknown source"),
    "none": ("#bdbdbd", 0.25, 0.8, "told: no leader"),
    "unreachable": ("#c00000", 0.1, 0.95, "lookup failed"),
    "slow": ("#1f2328", 0.1, 0.18, "lookup took long"),
    "batch": ("#0072b2", 0.25, 0.8, "batch completed"),
    "again": ("#d55e00", 0.1, 0.95, "completed again"),
    "pause": ("#d55e00", 0.5, 0.55, "longest time without a new batch"),
}
"""Colour, lower and upper edge within a lane, and meaning of each kind of span, in the order of drawing."""

FAULT, OVER = "#fde0c5", "#eeeeee"


def timeline(outcome: Outcome, events: Sequence[Event], least: float = 0.0) -> str:
    """Return the picture as SVG.

    Args:
        outcome: when the drill began, how long it took, and what was broken.
        events: its history, in any order; may be empty.
        least: seconds that the picture shows at least, so that pictures can be compared.
    """
    drawn = draw(outcome, events, least)
    return svg(drawn, printable(f"Timeline of {outcome.drill}"))


@style()
def draw(outcome: Outcome, events: Sequence[Event], least: float = 0.0) -> Figure:
    """Return the picture; its axis of seconds begins with the drill."""
    events = sorted(events, key=lambda event: event.at)
    shown = window(outcome, events, least)
    found = lanes(events, shown)
    faults = _faults(outcome.faults, shown)
    kinds = [kind for kind in KINDS if any(lane.spans.get(kind) for lane in found)]
    below = AXIS_IN + LINE_IN * (len(faults) + (len(kinds) + 4) // 5) + 0.1
    height = TOP_IN + LANE_IN * len(found) + below
    picture = Figure(figsize=(WIDTH_IN, height))
    wide, high = WIDTH_IN - LEFT_IN - RIGHT_IN, LANE_IN * len(found)
    ax = picture.add_axes((LEFT_IN / WIDTH_IN, below / height, wide / WIDTH_IN, high / height))
    ax.set(xlim=(0, shown.seconds), ylim=(len(found), 0), yticks=[], xlabel="")
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color=GRID, linewidth=0.6)
    if outcome.seconds and outcome.seconds < shown.seconds:
        bars(ax, [(outcome.seconds, shown.seconds)], len(found) / 2, high * POINTS, OVER, "over")
    _draw_faults(ax, outcome.faults, shown, len(found))
    for number, lane in enumerate(found):
        _draw_lane(picture, ax, lane, number, shown)
    _write_below(picture, faults, kinds, below)
    return picture


def _draw_lane(picture: Figure, ax: Axes, lane: Lane, number: int, shown: Window) -> None:
    thinnest = THINNEST * shown.seconds
    ax.axhline(number, color=GRID, linewidth=0.6)
    for kind, (colour, low, high, _) in KINDS.items():
        wide = [
            (min(begins, shown.seconds - thinnest), max(ends, begins + thinnest))
            for begins, ends in lane.spans.get(kind, ())
        ]
        thickness = (high - low) * LANE_IN * POINTS
        bars(ax, wide, number + 1 - (low + high) / 2, thickness, colour, kind)
    height = picture.get_figheight()
    top = 1 - (TOP_IN + LANE_IN * number) / height
    name = fitted(printable(lane.name), (LEFT_IN - 0.2) * POINTS, NAME_PT)
    picture.text(0.1 / WIDTH_IN, top - 0.23 / height, name, size=NAME_PT, gid="name")
    for line, text in enumerate(lane.sums):
        said = fitted(text, (RIGHT_IN - 0.2) * POINTS, SUM_PT)
        x, y = 1 - (RIGHT_IN - 0.1) / WIDTH_IN, top - (0.16 + 0.15 * line) / height
        picture.text(x, y, said, size=SUM_PT, gid="sum")


def _draw_faults(ax: Axes, faults: Sequence[Span], shown: Window, lowest: int) -> None:
    """Draw bands over all lanes, with their numbers above them where there is room."""
    free = 0.0
    for number, fault in enumerate(_shown(faults, shown), 1):
        begins, ends = fault.begins - shown.began, min(fault.ends - shown.began, shown.seconds)
        wide = [(begins, max(ends, begins + THINNEST * shown.seconds))]
        bars(ax, wide, lowest / 2, lowest * LANE_IN * POINTS, FAULT, "fault")
        ax.axvline(begins, color=KINDS["nobody"][0], linewidth=0.8)
        if begins >= free:
            ax.annotate(str(number), (begins, 0), (0, 3), textcoords="offset points", size=NAME_PT, gid="number")
            free = begins + shown.seconds * 0.025


def _shown(faults: Sequence[Span], shown: Window) -> list[Span]:
    return sorted(
        (each for each in faults if each.begins <= shown.ends and each.ends >= shown.began),
        key=lambda each: each.begins,
    )


def _faults(faults: Sequence[Span], shown: Window) -> list[str]:
    """A line for each fault: its number, when it began, what it was, and how long it lasted."""
    found = _shown(faults, shown)
    lines = [
        f"{number}   from {fault.begins - shown.began:.1f} s: {printable(fault.what)}{_lasted(fault, shown)}"
        for number, fault in enumerate(found, 1)
    ]
    left = len(lines) - MAX_FAULTS
    return [*lines[:MAX_FAULTS], f"{left} more faults are not listed."] if left > 0 else lines


def _lasted(fault: Span, shown: Window) -> str:
    if fault.ends > shown.ends:
        return ", until the end"
    return f", {seconds(fault.ends - fault.begins)}" if fault.ends - fault.begins >= INSTANT_S else ""


def _write_below(picture: Figure, faults: Sequence[str], kinds: Sequence[str], below: float) -> None:
    height = picture.get_figheight()
    picture.text(0.1 / WIDTH_IN, (below - 0.2) / height, "seconds", size=SUM_PT, gid="unit")
    for line, text in enumerate(faults):
        y = (below - AXIS_IN - LINE_IN * (line + 0.6)) / height
        said = fitted(text, (WIDTH_IN - LEFT_IN - 0.2) * POINTS, SUM_PT + 0.5)
        picture.text(LEFT_IN / WIDTH_IN, y, said, size=SUM_PT + 0.5, gid="broken")
    handles = [Patch(color=KINDS[kind][0], label=KINDS[kind][3]) for kind in kinds]
    picture.legend(
        handles=handles, loc="lower left", ncols=5, frameon=False, fontsize=SUM_PT, handlelength=1.2, borderaxespad=0.2
    )
