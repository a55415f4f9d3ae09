"""A timeline, read back from its SVG: what is where, and that nothing lies on anything else."""

from dataclasses import replace
from math import inf

import pytest

from ha.drill.outcome import Outcome, Span
from ha.drill.report.frame import RIGHT
from ha.drill.report.picture import timeline
from ha.history.events import Believed, Event, Fault, Granted, Ran
from tests.drills.report.drawn import Drawn
from tests.drills.report.moments import at, drawn, lookup
from tests.drills.report.synthetic import BEGAN, JOB, Story, history, outcome

STORY = Story(seconds=86.0)  # ten pixels a second
HOSTILE = '"><script>alert(1)</script>&amp;\0\u202e'


# --- contenders


def test_a_bar_for_each_time_that_somebody_led() -> None:
    picture = drawn(history(STORY), *outcome("d", STORY, what="kill -9").faults)
    first, second = picture.boxes("leads")
    assert first["x"] == pytest.approx(at(1.3), abs=0.1)
    assert first["x"] + first["width"] == pytest.approx(at(25), abs=0.2), "to the death of its process"
    assert second["x"] == pytest.approx(at(26.4), abs=0.1)
    assert second["y"] > first["y"]
    (lapsing,) = picture.boxes("lapsing")
    assert lapsing["x"] == pytest.approx(at(25), abs=0.1)
    assert 20 < lapsing["width"] <= 60, "what was left of a belief of 6 s"
    assert picture.texts("epoch") == ["epoch 1", "epoch 2"]
    assert [text for text in picture.texts("name") if text.startswith("contender")] == [
        "contender-a",
        "contender-b",
        "contender-c",
    ]


def test_the_time_without_a_leader_is_shown_and_said() -> None:
    picture = drawn(history(STORY))
    (nobody,) = picture.boxes("nobody")
    assert nobody["x"] == pytest.approx(at(25), abs=0.1)
    assert nobody["width"] == pytest.approx(14, abs=0.2)
    assert "1.40 s in all" in picture.texts("sum")


def test_two_leaders_and_two_drivers_at_once_are_shown() -> None:
    story = replace(STORY, killed=False, takeover=5.0, twice=4.0)
    picture = drawn(history(story))
    assert {"two leaders", "two drivers"} <= set(picture.texts("name"))
    leaders, drivers = picture.boxes("two")
    assert leaders["width"] == pytest.approx(37, abs=0.2)
    assert drivers["width"] == pytest.approx(38.5, abs=0.2), "the command ends a little later"
    assert not {"two leaders", "two drivers"} & set(drawn(history(STORY)).texts("name"))


def test_a_leader_that_comes_and_goes_all_the_time_is_drawn_in_a_few_bars() -> None:
    events: list[Event] = []
    for number in range(4000):
        begins = BEGAN + 0.02 * number
        events += [
            Granted(begins, JOB, "a", number, f"s{number}", "first"),
            Believed(begins, JOB, "a", begins + 9, None),
            Believed(begins + 0.01, JOB, "a", None, None),
        ]
    picture = drawn(events)
    assert len(picture.boxes("leads")) == 1
    assert picture.texts("epoch") == ["4000 epochs, 0 to 3999"]
    assert "46.0 s in all" in picture.texts("sum"), "without a leader, whatever is drawn as one"


def test_a_command_that_was_never_seen_to_end_runs_to_the_end() -> None:
    picture = drawn([Ran(BEGAN + 5, JOB, "a", 1, True)])
    assert picture.titles("runs") == ["the command of a runs"]
    (path,) = [each.attrib["d"] for each in picture.svg.iter("path") if each.get("class") == "runs"]
    assert path.startswith(f"M{at(5):.0f} ")
    assert f"h{RIGHT - at(5):.0f}" in path


# --- faults


def test_a_band_from_the_beginning_of_a_fault_to_its_end() -> None:
    picture = drawn([], Span("NameNode frozen", BEGAN + 10, BEGAN + 30), Span("never mended", BEGAN + 50, inf))
    first, second = picture.boxes("fault")
    assert (first["x"], first["width"]) == (at(10), 200)
    assert second["x"] + second["width"] == RIGHT
    assert picture.texts("broken") == ["never mended, until the end", "NameNode frozen, 20.0 s"]


def test_what_happens_at_once_is_seen_as_well() -> None:
    picture = drawn([], Span("kill -9", BEGAN + 10, BEGAN + 10))
    assert picture.boxes("fault")[0]["width"] >= 2
    assert picture.texts("broken") == ["kill -9"]


def test_many_faults_at_once_do_not_collide() -> None:
    faults = [Span(f"host-{n} cut off from everything", BEGAN + 20 + n / 2, BEGAN + 60) for n in range(30)]
    picture = drawn(history(STORY), *faults, Span("w" * 300, BEGAN + 80, BEGAN + 85))
    assert not picture.collisions()
    assert not picture.outside()
    assert len(picture.boxes("fault")) == 31
    assert len(picture.titles("fault")) == 31, "what has no room for its name has it as a title"


def test_what_the_history_says_of_faults_is_marked() -> None:
    picture = drawn([Fault(BEGAN + 10, "", "one"), Fault(BEGAN + 10.1, "", "two"), Fault(BEGAN + 40, "", "three")])
    assert picture.titles("mark") == ["10.00 s: one; 10.10 s: two", "40.00 s: three"]


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
    svg = timeline(told, history(story))
    picture = Drawn.parse(svg)
    assert not picture.collisions()
    assert not picture.outside()
    assert len(svg) < 60_000


def test_what_is_too_much_is_said() -> None:
    picture = drawn([lookup(n / 10, n / 10 + 0.01, reader=f"r{n:02}") for n in range(40)])
    assert "24 more readers are not shown." in picture.texts("sum")


def test_no_events() -> None:
    picture = drawn([], Span("frozen", BEGAN + 5, BEGAN + 9))
    assert "No events were recorded." in picture.texts("sum")
    assert picture.boxes("fault")


def test_a_drill_of_which_no_time_is_known_is_drawn_by_its_events() -> None:
    drill = Outcome(drill="d", title="t", group="g", ground="sandbox", status="failed", reason="it broke")
    picture = Drawn.parse(timeline(drill, [lookup(5, 5.1), lookup(15, 15.1)]))
    assert "10" in picture.texts("tick")
    assert Drawn.parse(timeline(drill, [])).texts("tick")


def test_a_longer_axis_says_where_the_drill_was_over() -> None:
    picture = drawn(history(replace(STORY, seconds=43)), seconds=43, least=86)
    assert picture.texts("tick")[-1] == "80"
    (over,) = picture.boxes("over")
    assert (over["x"], over["width"]) == (at(43), 430)
    assert not drawn(history(STORY)).boxes("over")


def test_hostile_names_are_only_texts() -> None:
    events: list[Event] = [
        lookup(1, 1.5, reader=HOSTILE),
        Believed(BEGAN + 1, JOB, HOSTILE, BEGAN + 50, None),
        Fault(BEGAN, "", HOSTILE),
    ]
    picture = drawn(events, Span(HOSTILE, BEGAN + 1, BEGAN + 2))
    assert {each.tag for each in picture.svg.iter()} == {"svg", "path", "rect", "text", "title"}
    assert any("<script>" in text for text in picture.texts("broken"))
    assert "\0" not in "".join(picture.texts())
