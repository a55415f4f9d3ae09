"""Tests of the timeline: the positions of its elements, and that none overlap."""

import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from math import inf
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ha.drill.outcome import Outcome, Span
from ha.drill.report.drawing import fitted, svg
from ha.drill.report.picture import MAX_FAULTS, draw, timeline
from ha.history.events import Believed, Event, Fault
from tests.unit.ha.drill.report.moments import boxes, drawn, drill, lookup, texts
from tests.unit.ha.drill.report.synthetic import BEGAN, JOB, Story, history, outcome

pytestmark = pytest.mark.slow  # each computes for a tenth of a second and more

STORY = Story(seconds=86.0)
HOSTILE = '"><script>alert(1)</script>&amp;$x_1$\0\u202e'


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other, and texts that go beyond the picture."""
    with warnings.catch_warnings(action="ignore"):  # characters that the font does not have
        renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
        figure.draw(renderer)
        written: list[Any] = figure.findobj(match=Text)
        found = {text: text.get_window_extent(renderer) for text in written if text.get_text()}
    page = figure.bbox
    outside = [
        (text.get_text(), "the edge")
        for text, box in found.items()
        if box.x0 < page.x0 - 1 or box.x1 > page.x1 + 1 or box.y0 < page.y0 - 1 or box.y1 > page.y1 + 1
    ]
    met = [
        (one.get_text(), other.get_text())
        for (one, box), (other, box2) in combinations(found.items(), 2)
        if box.x0 < box2.x1 - 1 and box2.x0 < box.x1 - 1 and box.y0 < box2.y1 - 1 and box2.y0 < box.y1 - 1
    ]
    return [*outside, *met]


def test_spans_are_drawn_where_they_were() -> None:
    picture = drawn(history(STORY), *outcome("d", STORY, what="kill -9").faults)
    first, second = boxes(picture, "leads")
    assert list(first) == pytest.approx([1.3, 25], abs=0.01)
    assert second[0] == pytest.approx(26.4, abs=0.01)
    assert {"contender-a", "contender-b", "no leader", "batches"} <= set(texts(picture, "name"))
    assert {"epoch 1", "1.40 s in all"} <= set(texts(picture, "sum"))


# --- faults


def test_a_band_from_the_beginning_of_a_fault_to_its_end() -> None:
    picture = drawn([], Span("never mended", BEGAN + 50, inf), Span("NameNode frozen", BEGAN + 10, BEGAN + 30))
    assert boxes(picture, "fault") == [(10, 30), (50, 86)]
    assert texts(picture, "number") == ["1", "2"]
    assert texts(picture, "broken") == [
        "1   from 10.0 s: NameNode frozen, 20.0 s",
        "2   from 50.0 s: never mended, until the end",
    ]


def test_a_fault_of_an_instant_is_seen_as_well() -> None:
    picture = drawn([], Span("kill -9", BEGAN + 10, BEGAN + 10))
    ((begins, ends),) = boxes(picture, "fault")
    assert 0.1 < ends - begins < 0.5
    assert texts(picture, "broken") == ["1   from 10.0 s: kill -9"]


@pytest.mark.slow
def test_many_faults_at_once_do_not_collide() -> None:
    faults = [Span(f"host-{n} cut off from everything", BEGAN + 20 + n / 2, BEGAN + 60) for n in range(30)]
    picture = drawn(history(STORY), Span("w" * 300, BEGAN + 10, BEGAN + 15), *faults)
    assert not overlaps(picture)
    assert len(boxes(picture, "fault")) == 31
    assert len(texts(picture, "broken")) == MAX_FAULTS + 1
    assert texts(picture, "broken")[-1] == f"{31 - MAX_FAULTS} more faults are not listed."


# --- all of it


STORIES = {
    "takeover": STORY,
    "no takeover": replace(STORY, takeover=None),
    "two at once": replace(STORY, killed=False, takeover=6, twice=5, warm=14),
    "unreachable": replace(STORY, during={"unreachable": 1.0}, takeover=8),
    "short": replace(STORY, seconds=30, fault_at=10, healed_at=12),
    "long": replace(STORY, seconds=600, fault_at=100, healed_at=400),
    "many readers": replace(STORY, readers=[f"reader-{n}" for n in range(30)], seconds=40),
    "long names": replace(STORY, readers=["r" * 300, "W" * 90, "語" * 80]),
}


@pytest.mark.parametrize("name", STORIES)
def test_no_text_lies_on_another_or_goes_beyond_the_picture(name: str) -> None:
    story = STORIES[name]
    told = outcome("d", story, what="the leader's host is cut off from ZooKeeper and from every other contender")
    picture = draw(told, history(story))
    assert not overlaps(picture)
    assert len(svg(picture, "Timeline of d")) < 70_000  # the oldest matplotlib writes the most


def test_what_is_too_much_is_said() -> None:
    picture = drawn([lookup(n / 10, n / 10 + 0.01, reader=f"r{n:02}") for n in range(40)])
    assert "24 more readers are not shown." in texts(picture, "sum")


def test_no_events() -> None:
    picture = drawn([], Span("frozen", BEGAN + 5, BEGAN + 9))
    assert "No events were recorded." in texts(picture, "sum")
    assert boxes(picture, "fault")


def test_a_drill_of_which_no_time_is_known_is_drawn_by_its_events() -> None:
    unknown = Outcome(drill="d", title="t", group="g", environment="sandbox", status="failed", reason="it broke")
    assert draw(unknown, [lookup(5, 5.1), lookup(15, 15.1)]).axes[0].get_xlim()[1] == pytest.approx(10.1)
    assert draw(unknown, []).axes[0].get_xlim()[1] == 1


def test_a_longer_axis_says_where_the_drill_was_over() -> None:
    picture = drawn(history(replace(STORY, seconds=43)), seconds=43, least=86)
    assert picture.axes[0].get_xlim()[1] == 86
    assert boxes(picture, "over") == [(43, 86)]
    assert not boxes(drawn(history(STORY)), "over")


def test_hostile_names_are_only_texts() -> None:
    events: list[Event] = [
        lookup(1, 1.5, reader=HOSTILE),
        Believed(BEGAN + 1, JOB, HOSTILE, BEGAN + 50, None),
        Fault(BEGAN, "", HOSTILE),
    ]
    shown = timeline(drill(Span(HOSTILE, BEGAN + 1, BEGAN + 2)), events)
    found = ET.fromstring(shown)  # noqa: S314  # our own
    tags = {each.tag.rpartition("}")[2] for each in found.iter()}
    assert tags <= {"svg", "title", "defs", "style", "g", "path", "use", "text", "tspan", "clipPath", "rect"}
    said = ["".join(each.itertext()) for each in found.iter() if each.tag.endswith("}text")]
    assert any("<script>" in text and "$x_1$" in text for text in said)
    assert "\0" not in shown


def test_the_same_drill_gives_the_same_picture() -> None:
    told = outcome("d", STORY, what="kill -9")
    assert timeline(told, history(STORY)) == timeline(told, history(STORY))


@pytest.mark.parametrize("room", [5.0, 30.0, 120.0])
def test_a_shortened_text_keeps_its_ends(room: float) -> None:
    short = fitted("contender-a of the first host", room, 9)
    head, mark, tail = short.rpartition("…")
    assert not short or mark
    assert "contender-a of the first host".startswith(head)
    assert "contender-a of the first host".endswith(tail)
