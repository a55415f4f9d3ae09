"""The lanes of streaming queries: a tick for each batch, some numbers, and the longest time without a new one."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from ha.drill.report.canvas import Box, Canvas
from ha.drill.report.figures import count, seconds
from ha.drill.report.frame import LEFT, RIGHT, SMALL, Axis
from ha.drill.report.labels import Label, choose
from ha.drill.report.lane import name_lane
from ha.drill.report.spans import Span
from ha.history.events import Completed

_TOP, _HEIGHT = 4, 10
"""Where the ticks of a lane are."""

_NUMBERED = 60
"""Pixels between the numbers of ordinary batches, about."""

_GAP, _GAPS = 2.0, 3.0
"""Seconds, and so many times the usual pause: a longer one is worth a word."""


_VISIBLE = 12
"""Pixels that a gap must have for its arrow."""


class BatchLane:
    """The batches of one query.

    A batch that was completed before is no progress: a successor says it again of the batch that it found, and a job
    that is not fenced may even have written it again. It is shown as what it is, and judged elsewhere.
    """

    height = 33.0

    def __init__(self, axis: Axis, query: str, batches: Sequence[Completed], until: float) -> None:
        """Take what was completed.

        Args:
            axis: of the picture.
            query: how the lane is called.
            batches: of the query, at least one.
            until: no batch could have been seen later.
        """
        self._axis = axis
        self._query = query
        self._new: list[Completed] = []
        self._again: list[Completed] = []
        self._until = until
        for each in sorted(batches, key=lambda each: each.ended):
            old = bool(self._new) and each.batch <= self._new[-1].batch
            (self._again if old else self._new).append(each)

    def draw(self, canvas: Canvas, top: float) -> None:
        """Draw it; see :class:`ha.drill.report.lane.Lane`."""
        axis = self._axis
        first, last = self._new[0].batch, self._new[-1].batch
        again = f"{count(len(self._again))} times one again" if self._again else ""
        name_lane(canvas, top, self._query, f"batch {first} to {last}", again)
        places = dict.fromkeys(round(axis.x(each.ended)) for each in self._new)
        title = f"{self._query}: {count(len(self._new))} batches completed, from {first} to {last}"
        canvas.rects((Box(x - 0.5, top + _TOP, 1, _HEIGHT) for x in places), "batch", title)
        for each in self._again:
            title = f"batch {each.batch} completed again, by {each.contender}, epoch {each.epoch}"
            canvas.rect(Box(axis.x(each.ended) - 1, top + _TOP - 2, 2.5, _HEIGHT + 4), "again", title)
        gap = self._gap()
        if gap is not None:
            begins, ends, y = axis.x(gap[0]) + 3, axis.x(gap[1]) - 3, top + _TOP + _HEIGHT / 2
            canvas.path(f"M{begins:.1f} {y - 3}v6m0 -3H{ends:.1f}m0 -3v6", "gap", f"no new batch for {_long(gap)}")
        for label in choose(self._labels(gap)):
            canvas.text(label.left, top + 27, label.text, "small")

    def _gap(self) -> Span | None:
        """The longest time without a new batch, if it stands out and can be seen."""
        ends = [each.ended for each in self._new if each.ended < self._until]
        gaps = list(pairwise([*ends, self._until]))
        if not gaps:
            return None
        longest = max(gaps, key=lambda gap: gap[1] - gap[0])
        lasts, usual = longest[1] - longest[0], median(ends - begins for begins, ends in gaps)
        visible = self._axis.x(longest[1]) - self._axis.x(longest[0])
        return longest if lasts >= _GAP and lasts > _GAPS * usual and visible > _VISIBLE else None

    def _labels(self, gap: Span | None) -> list[Label]:
        """What could be written below the ticks, the important things first."""
        x, limits, labels = self._axis.x, (float(LEFT), float(RIGHT)), []
        if gap is not None:
            middle = (x(gap[0]) + x(gap[1])) / 2
            labels.append(Label.around(middle, f"{_long(gap)} without a new batch", SMALL, limits))
            labels.append(Label.around(middle, _long(gap), SMALL, limits))  # where the longer one is in the way
        firsts = [each for before, each in pairwise(self._new) if each.epoch != before.epoch]
        steps, last = [], float("-inf")
        for each in self._new:
            if x(each.ended) - last >= _NUMBERED:
                steps.append(each)
                last = x(each.ended)
        important = [*self._new[:1], *firsts, *self._new[-1:], *steps]
        return labels + [Label.around(x(each.ended), str(each.batch), SMALL, limits) for each in important]


def _long(gap: Span) -> str:
    return seconds(gap[1] - gap[0])
