"""One picture of one drill: who led, what was broken, what readers were told, which batches came, over the seconds."""

import re
from collections.abc import Sequence

from ha.drill.outcome import Outcome
from ha.drill.report.batch_lanes import BatchLane
from ha.drill.report.canvas import Box, Canvas
from ha.drill.report.contender_lanes import ContenderLane, MomentsLane
from ha.drill.report.fault_bands import FaultBands
from ha.drill.report.frame import LEFT, MARGIN, RIGHT, TEXT, WIDTH, Axis
from ha.drill.report.lane import Lane
from ha.drill.report.leading import by_contender, commands, stays
from ha.drill.report.looking import looks
from ha.drill.report.reader_lanes import ReaderLane
from ha.drill.report.spans import complement, shared
from ha.history.events import Believed, Completed, Event, Fault, Granted, LookedUp, Ran

_MOST_LANES = 16
"""Contenders, readers or queries that have a lane; what is beyond is said, not shown."""

_AXIS = 30.0
"""Pixels below the lanes, for the seconds."""

_RECORDED = re.compile(r"(?P<name>.+)-(?P<process>\d+)-[0-9a-f]{8}\.(?P<number>\d+)")
"""How a recorder calls a reader, so that its name is unique: with process id and random digits, and a number."""

_SHORT = ("{name}", "{name} .{number}", "{name} {process}", "{name} {process}.{number}")
"""Names for people, the shortest first."""


def timeline(outcome: Outcome, events: Sequence[Event], seconds: float = 0.0) -> str:
    """Draw what happened in a drill.

    Args:
        outcome: when it began, how long it took, and what was broken.
        events: its history, in any order; may be empty.
        seconds: that the picture shows at least, so that pictures can be compared.

    Returns:
        An SVG element for a page whose style sheet knows its classes.
    """
    events = sorted(events, key=lambda event: event.at)
    axis = axis_of(outcome, events, seconds)
    faults = FaultBands(axis, outcome.faults)
    lanes = _lanes(axis, events)
    top = 6 + faults.height
    bottom = top + sum(lane.height for lane in lanes)
    canvas = Canvas(WIDTH, bottom + _AXIS, f"Timeline of {outcome.drill}, {axis.seconds:.0f} seconds")
    lane_top = top
    for lane in lanes:
        canvas.line(0, lane_top, WIDTH, lane_top, "border")
        lane_top += lane.height
    if (over := outcome.began + outcome.seconds) < axis.ends and outcome.seconds:
        canvas.rect(Box(axis.x(over), top, RIGHT - axis.x(over), bottom - top), "over", "the drill was over")
    _draw_axis(canvas, axis, top, bottom)
    faults.draw(canvas, top, bottom)
    _draw_marks(canvas, axis, events, top)
    lane_top = top
    for lane in lanes:
        lane.draw(canvas, lane_top)
        lane_top += lane.height
    return str(canvas)


def axis_of(outcome: Outcome, events: Sequence[Event], seconds: float = 0.0) -> Axis:
    """Return the time axis of a picture; see :func:`timeline`."""
    times = [event.at for event in events]
    began = outcome.began or min([*times, *(fault.begins for fault in outcome.faults)], default=0.0)
    times += [event.ended for event in events if isinstance(event, LookedUp | Completed)]
    last = max([*times, *(fault.begins for fault in outcome.faults)], default=began)
    return Axis(began, max(outcome.seconds, seconds, last - began, 1.0))


def _lanes(axis: Axis, events: Sequence[Event]) -> list[Lane]:
    contenders, moments = _contender_lanes(axis, events)
    readers = looks(events, axis)
    names = _reader_names([each.reader for each in readers])
    batches: dict[str, list[Completed]] = {}
    for event in events:
        if isinstance(event, Completed) and axis.shows(event.ended):
            batches.setdefault(event.query, []).append(event)
    until = _watched_until(axis, events)
    lanes: list[Lane] = [
        *_limited(contenders, "contenders"),
        *moments,
        *_limited([ReaderLane(axis, each, names[each.reader]) for each in readers], "readers"),
        *_limited(
            [
                BatchLane(axis, "batches" if len(batches) == 1 else query, found, until)
                for query, found in sorted(batches.items())
            ],
            "queries",
        ),
    ]
    return lanes or [_Remark("No events were recorded.")]


def _contender_lanes(axis: Axis, events: Sequence[Event]) -> tuple[list[Lane], list[Lane]]:
    stayed, ran = stays(events), commands(events)
    # Not whoever completed a batch: that is a driver, a process of another name below its sidecar.
    names = {event.contender for event in events if isinstance(event, Believed | Granted | Ran)}
    led = by_contender(stayed)
    lanes: list[Lane] = [
        ContenderLane(axis, name, [stay for stay in stayed if stay.contender == name], ran.get(name, []))
        for name in sorted(names)
    ]
    moments: list[Lane] = []
    if names:
        first = min((stay.begins for stay in stayed), default=axis.began)
        watched = max(axis.began, first), _watched_until(axis, events)
        nobody = complement([span for spans in led.values() for span in spans], watched)
        if nobody:
            moments.append(MomentsLane(axis, "no leader", nobody, "nobody", "nobody led"))
    if both := shared(led):
        moments.append(MomentsLane(axis, "two leaders", both, "two", "two believed to lead at once"))
    if both := shared(ran):
        moments.append(MomentsLane(axis, "two drivers", both, "two", "commands of two contenders ran at once"))
    return lanes, moments


def _watched_until(axis: Axis, events: Sequence[Event]) -> float:
    """The end of the last lookup or batch: later, nothing is missed by anybody, because the drill is being cleared."""
    ends = [event.ended for event in events if isinstance(event, LookedUp | Completed)]
    return min(max(ends, default=axis.ends), axis.ends)


def _limited(lanes: Sequence[Lane], what: str) -> list[Lane]:
    if len(lanes) <= _MOST_LANES:
        return list(lanes)
    return [*lanes[:_MOST_LANES], _Remark(f"{len(lanes) - _MOST_LANES} more {what} are not shown.")]


def _reader_names(readers: Sequence[str]) -> dict[str, str]:
    """The shortest form of each name that tells all apart whose names begin alike."""
    recorded = {reader: parts.groupdict() for reader in readers if (parts := _RECORDED.fullmatch(reader))}
    names = {reader: reader for reader in readers}
    for name in {parts["name"] for parts in recorded.values()} - names.keys():
        alike = {reader: parts for reader, parts in recorded.items() if parts["name"] == name}
        for form in _SHORT:
            short = {reader: form.format(**parts) for reader, parts in alike.items()}
            if len(set(short.values())) == len(short):
                names |= short
                break
    return names


def _draw_axis(canvas: Canvas, axis: Axis, top: float, bottom: float) -> None:
    canvas.line(LEFT, bottom, RIGHT, bottom, "axis")
    for tick in axis.ticks():
        x = axis.x(axis.began + tick)
        canvas.line(x, top, x, bottom + 4, "grid")
        canvas.text(x, bottom + 19, f"{tick:g}", "tick")
    canvas.text(MARGIN, bottom + 19, "seconds", "sum")


def _draw_marks(canvas: Canvas, axis: Axis, events: Sequence[Event], top: float) -> None:
    """What the history itself says of faults: one mark a place, told when a pointer rests on it."""
    marks: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, Fault) and axis.shows(event.at):
            place = round(axis.x(event.at) / 4) * 4
            marks.setdefault(place, []).append(f"{event.at - axis.began:.2f} s: {event.what}")
    for x, said in marks.items():
        canvas.path(f"M{x - 4} {top}h8l-4 6z", "mark", "; ".join(said))


class _Remark:
    """A lane with a sentence in it."""

    height = 31.0

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def draw(self, canvas: Canvas, top: float) -> None:
        canvas.text(LEFT + MARGIN, top + TEXT + 6, self._sentence, "sum")
