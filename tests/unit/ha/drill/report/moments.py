"""Single events of a drill of 86 seconds, the lanes that show them, and pictures of them."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from ha.drill.outcome import Outcome, Span
from ha.drill.report.lanes import Lane, lanes, window
from ha.drill.report.picture import draw
from ha.history.events import Completed, Event, LookedUp
from tests.unit.ha.drill.report.synthetic import BEGAN, JOB


def drill(*faults: Span, seconds: float = 86.0) -> Outcome:
    return Outcome(
        drill="d",
        title="t",
        group="g",
        environment="sandbox",
        status="passed",
        began=BEGAN,
        seconds=seconds,
        faults=[*faults],
    )


def shown(events: Sequence[Event]) -> dict[str, Lane]:
    """The lanes of these events, by name."""
    events = sorted(events, key=lambda event: event.at)
    return {lane.name: lane for lane in lanes(events, window(drill(), events))}


def drawn(events: Sequence[Event], *faults: Span, seconds: float = 86.0, least: float = 0.0) -> Figure:
    return draw(drill(*faults, seconds=seconds), events, least)


def boxes(figure: Figure, kind: str) -> list[tuple[float, float]]:
    """Beginnings and ends of the boxes of a kind, in seconds since the drill began."""
    found = []
    for patch in figure.axes[0].patches:
        if isinstance(patch, PathPatch) and patch.get_gid() == kind:
            ends = [float(x) for x in np.asarray(patch.get_path().vertices)[:, 0]]
            found += list(zip(ends[::2], ends[1::2], strict=True))
    return found


def seconds(spans: Iterable[tuple[float, float]]) -> list[float]:
    """Beginnings and ends in one list, to be compared approximately."""
    return [at for span in spans for at in span]


def texts(figure: Figure, kind: str) -> list[str]:
    return [text.get_text() for text in [*figure.texts, *figure.axes[0].texts] if text.get_gid() == kind]


def lookup(begins: float, ends: float, told: str = "leader", source: str = "snapshot", reader: str = "r") -> LookedUp:
    source = source if told == "leader" else ""
    return LookedUp(BEGAN + begins, JOB, BEGAN + ends, 2.0, reader, told, 1, "s", {}, source)


def batch(ended: float, number: int, epoch: int = 1) -> Completed:
    return Completed(BEGAN + ended - 0.1, JOB, BEGAN + ended, "a", epoch, "words", number)
