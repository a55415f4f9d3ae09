"""Single events of a drill of 86 seconds, which is ten pixels a second, and pictures of them."""

from collections.abc import Sequence

from ha.drill.outcome import Outcome, Span
from ha.drill.report.frame import LEFT
from ha.drill.report.picture import timeline
from ha.history.events import Completed, Event, LookedUp
from tests.drills.report.drawn import Drawn
from tests.drills.report.synthetic import BEGAN, JOB


def drawn(events: Sequence[Event], *faults: Span, seconds: float = 86.0, least: float = 0.0) -> Drawn:
    drill = Outcome(
        drill="d",
        title="t",
        group="g",
        ground="sandbox",
        status="passed",
        began=BEGAN,
        seconds=seconds,
        faults=[*faults],
    )
    return Drawn.parse(timeline(drill, events, least))


def at(seconds: float) -> float:
    """Where a second is, in pixels."""
    return LEFT + 10 * seconds


def lookup(begins: float, ends: float, told: str = "leader", source: str = "snapshot", reader: str = "r") -> LookedUp:
    source = source if told == "leader" else ""
    return LookedUp(BEGAN + begins, JOB, BEGAN + ends, 2.0, reader, told, 1, "s", {}, source)


def batch(ended: float, number: int, epoch: int = 1) -> Completed:
    return Completed(BEGAN + ended - 0.1, JOB, BEGAN + ended, "a", epoch, "words", number)
