"""The lanes of those who look up: what they were told, by source, and what took long."""

from ha.drill.report.canvas import Box, Canvas
from ha.drill.report.figures import count, seconds
from ha.drill.report.frame import LEFT, Axis
from ha.drill.report.lane import name_lane
from ha.drill.report.looking import ANSWERS, COLUMN, Looks, took

_TOP, _HEIGHT = 6, 14
"""Where the columns of a lane are."""

_BEYOND = 3
"""Pixels by which a failure stands out of the columns, above and below: it is not told by colour alone."""

_SAYS = {
    "snapshot": "answered by the snapshot",
    "zookeeper": "answered by ZooKeeper",
    "hdfs": "answered by HDFS",
    "stale": "answered with the last leader known, marked stale",
    "other": "answered by an unknown source",
    "none": "told that there is no leader",
    "unreachable": "failed: no store answered",
}


class ReaderLane:
    """One reader."""

    height = 33.0

    def __init__(self, axis: Axis, looks: Looks, name: str) -> None:
        """Take what it was told.

        Args:
            axis: of the picture.
            looks: its lookups.
            name: that it is to be called by.
        """
        self._axis = axis
        self._looks = looks
        self._name = name

    def draw(self, canvas: Canvas, top: float) -> None:
        """Draw it; see :class:`ha.drill.report.lane.Lane`."""
        looks, x = self._looks, self._axis.x
        name_lane(canvas, top, self._name, *self._sums(), title=looks.reader)
        for kind, boxes in self._boxes(top).items():
            slowest = looks.slowest[kind]
            title = f"{count(looks.counts[kind])} lookups {_SAYS[kind]}, the slowest in {seconds(took(slowest))}"
            canvas.rects(boxes, kind, f"{self._name}: {title}")
        for miss in looks.misses:
            left = x(miss.begins)
            right = max(x(miss.ends), left + COLUMN)
            out = _BEYOND if miss.outcome == "unreachable" else 0
            box = Box(left, top + _TOP - out, right - left, _HEIGHT + 2 * out)
            since = miss.begins - self._axis.began
            span = f"{count(miss.lookups)} from {since:.2f} s on, for {seconds(miss.ends - miss.begins)}"
            title = f"{self._name}: lookups {_SAYS[miss.outcome]}: {span}"
            canvas.rect(box, miss.outcome, title)
        y = top + _TOP + _HEIGHT + 5
        slow = [Box(x(at), y, x(ended) - x(at), 2.5) for at, ended in looks.slow]
        title = f"{self._name}: lookups that took more than {seconds(COLUMN * self._axis.pixel)}"
        canvas.rects(slow, "slow", title)

    def _sums(self) -> tuple[str, str]:
        looks = self._looks
        parts = [f"{count(looks.counts.total())} lookups"]
        if failed := looks.counts["unreachable"]:
            parts.append(f"{count(failed)} failed" if failed < looks.counts.total() else "all failed")
        worst = looks.worst
        return ", ".join(parts), f"slowest {seconds(took(worst))} at {max(worst.at - self._axis.began, 0):.0f} s"

    def _boxes(self, top: float) -> dict[str, list[Box]]:
        """The parts of the columns, by kind; neighbours of one height are one box, so that quiet times cost nothing."""
        found: dict[str, list[Box]] = {}
        for number, counts in sorted(self._looks.columns.items()):
            x, y = LEFT + COLUMN * number, float(top + _TOP + _HEIGHT)
            for kind in filter(counts.get, ANSWERS):
                height = _HEIGHT * counts[kind] / counts.total()
                y -= height
                boxes = found.setdefault(kind, [])
                last = boxes[-1] if boxes else None
                if last is not None and (last.x + last.width, last.y, last.height) == (x, y, height):
                    boxes[-1] = last._replace(width=last.width + COLUMN)
                else:
                    boxes.append(Box(x, y, COLUMN, height))
        return found
