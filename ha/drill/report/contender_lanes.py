"""The lanes of those who may lead: a bar while a contender believes to lead, a thin one while its command runs."""

from collections.abc import Iterator, Sequence

from ha.drill.report.canvas import Box, Canvas
from ha.drill.report.figures import seconds
from ha.drill.report.frame import SMALL, Axis
from ha.drill.report.labels import Label, choose
from ha.drill.report.lane import name_lane
from ha.drill.report.leading import Stay
from ha.drill.report.spans import Span, total, union
from ha.drill.report.text import width

_THINNEST = 1.5
"""Pixels: what was short must be seen as well."""

_SHORT = 4
"""Pixels below which a bar may become one with its neighbour."""

_LISTED = 4
"""Epochs that are listed; of more, the first and the last are said."""

_BAR, _COMMAND = (5, 17), (25, 6)
"""Where the two bars of a lane begin, and their heights."""


class ContenderLane:
    """One contender."""

    height = 37.0

    def __init__(self, axis: Axis, contender: str, stays: Sequence[Stay], commands: Sequence[Span]) -> None:
        """Take what is known about it.

        Args:
            axis: of the picture.
            contender: its name.
            stays: when it believed to lead.
            commands: when its command ran.
        """
        self._axis = axis
        self._contender = contender
        self._stays = stays
        self._commands = commands

    def draw(self, canvas: Canvas, top: float) -> None:
        """Draw it; see :class:`ha.drill.report.lane.Lane`."""
        shown = [stay for stay in self._stays if stay.ends > self._axis.began and stay.begins < self._axis.ends]
        led = total(_clipped(stay.alive, self._axis) for stay in shown)
        name_lane(canvas, top, self._contender, f"led {seconds(led)}" if shown else "never led", _epochs(shown))
        for bar in self._bars(shown):
            self._draw_bar(canvas, top, bar)
        ran = union(self._commands, self._axis.pixel)
        spans = [span for span in ran if span[1] > self._axis.began and span[0] < self._axis.ends]
        boxes = [_box(self._axis, begins, ends, top + _COMMAND[0], _COMMAND[1]) for begins, ends in spans]
        canvas.rects(boxes, "runs", f"the command of {self._contender} runs")

    def _bars(self, shown: Sequence[Stay]) -> Iterator[list[Stay]]:
        """Yield what is drawn as one: stays too short and too close to be told apart, so that any number is drawn."""
        bar: list[Stay] = []
        for stay in shown:
            if bar:
                apart = stay.begins - bar[-1].ends
                short = min(stay.ends - stay.begins, bar[-1].ends - bar[-1].begins)
                if apart > self._axis.pixel or short > _SHORT * self._axis.pixel:
                    yield bar
                    bar = []
            bar.append(stay)
        if bar:
            yield bar

    def _draw_bar(self, canvas: Canvas, top: float, bar: Sequence[Stay]) -> None:
        axis, (y, height) = self._axis, (top + _BAR[0], _BAR[1])
        begins, last = bar[0].begins, bar[-1]
        ends, epochs = last.alive[1], _epochs(bar)
        times = f" {len(bar)} times" if len(bar) > 1 else ""
        span = f"from {begins - axis.began:.2f} s to {ends - axis.began:.2f} s"
        box = _box(axis, begins, ends, y, height)
        canvas.rect(box, "leads", ", ".join(filter(None, [f"{self._contender} leads{times}", epochs, span])))
        if last.died is not None and last.ends > last.died:
            title = f"{self._contender} is gone, but the others cannot know it for another {seconds(last.ends - ends)}"
            canvas.rect(_box(axis, last.died, last.ends, y, height), "lapsing", title)
        for text in (epochs, epochs.rpartition(" ")[2]):
            if text and width(text, SMALL) + 8 <= box.width:
                canvas.text(box.x + 5, y + 12.5, text, "epoch")
                break


class MomentsLane:
    """Moments that should be few: without a leader, with two of them, ..."""

    height = 31.0

    def __init__(self, axis: Axis, name: str, moments: Sequence[Span], kind: str, title: str) -> None:
        """Take what there was.

        Args:
            axis: of the picture.
            name: of the lane.
            moments: in order.
            kind: how they look.
            title: what was the case in them, as a sentence.
        """
        self._axis = axis
        self._name = name
        self._moments = [_clipped(each, axis) for each in moments if each[1] > axis.began and each[0] < axis.ends]
        self._kind = kind
        self._title = title

    def draw(self, canvas: Canvas, top: float) -> None:
        """Draw it; see :class:`ha.drill.report.lane.Lane`."""
        axis = self._axis
        name_lane(canvas, top, self._name, f"{seconds(total(self._moments))} in all", title=self._title)
        labels = []
        for begins, ends in union(self._moments, axis.pixel):
            # What is drawn as one may be many, so the sum is said and not the length.
            lasted = total(span for span in self._moments if begins <= span[0] and span[1] <= ends)
            span = f"{seconds(lasted)}, from {begins - axis.began:.2f} s to {ends - axis.began:.2f} s"
            canvas.rect(_box(axis, begins, ends, top + 5, 9), self._kind, f"{self._title}: {span}")
            middle, limits = (axis.x(begins) + axis.x(ends)) / 2, (axis.x(axis.began), axis.x(axis.ends))
            labels.append((lasted, Label.around(middle, seconds(lasted), SMALL, limits)))
        for label in choose([label for _, label in sorted(labels, key=lambda each: -each[0])]):
            canvas.text(label.left, top + 26, label.text, "small")


def _epochs(stays: Sequence[Stay]) -> str:
    """Which epochs they were, in a few words; empty if none is known."""
    epochs = [stay.epoch for stay in stays if stay.epoch is not None]
    if len(epochs) > _LISTED:
        return f"{len(epochs)} epochs, {epochs[0]} to {epochs[-1]}"
    return f"epoch{'s' * (len(epochs) > 1)} {', '.join(map(str, epochs))}" if epochs else ""


def _clipped(span: Span, axis: Axis) -> Span:
    return max(span[0], axis.began), max(axis.began, min(span[1], axis.ends))


def _box(axis: Axis, begins: float, ends: float, y: float, height: float) -> Box:
    left = axis.x(begins)
    return Box(left, y, max(axis.x(ends) - left, _THINNEST), height)
