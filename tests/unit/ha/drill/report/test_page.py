"""Tests of the page: complete, self-contained, and with all data escaped as text."""

from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from ha.drill.outcome import Check, DrillOutcome, Key, Report
from ha.drill.report import arranged, figure, render, tally, why
from ha.history.events import Fault
from tests.unit.ha.drill.report.synthetic import BEGAN, EVENTS, PLAIN, outcome, report, skipped

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&amp;'
VOID = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.said = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data

    def having(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.tags if name in attributes]

    def count(self, tag: str, kind: str = "") -> int:
        return sum(
            found == tag and kind in {*attributes.get("class", "").split(" "), ""} for found, attributes in self.tags
        )


def rendered(*outcomes: DrillOutcome) -> Page:
    return Page(render(report(*outcomes), {Key.of(each): EVENTS for each in outcomes}))


def made(**more: Any) -> DrillOutcome:
    return msgspec.structs.replace(PLAIN, **more)


def test_each_drill_has_a_row_a_section_and_a_timeline() -> None:
    page = rendered(outcome("kill"), outcome("stop"))
    targets = [link.removeprefix("#") for link in page.having("href") if link.startswith("#")]
    assert targets == ["kill-sandbox-hybrid-ha", "stop-sandbox-hybrid-ha"]
    assert set(targets) <= set(page.having("id"))
    assert page.count("details") == 2
    assert page.said.count("contender-b was granted epoch 2") == 2
    assert page.said.count("contender-b completed its first batch of words") == 2


def test_it_needs_nothing_from_elsewhere() -> None:
    page = rendered(outcome())
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "base"}
    assert not page.having("src")
    assert all(link.startswith("#") for link in page.having("href"))
    assert "default-src 'none'" in " ".join(page.having("content"))


def test_a_drill_that_was_not_run_says_so_and_why() -> None:
    page = rendered(outcome(), skipped("cut", "NOT RUN: no engine answered"))
    assert "Failover drills: 1 NOT RUN, 1 passed" in page.said
    assert page.count("td", "skipped") == 1
    assert page.said.count("no engine answered") == 2


def test_a_failure_is_shown_with_its_detail() -> None:
    page = rendered(outcome(twice=3.0))
    assert "Failover drills: 1 FAILED" in page.said
    assert page.said.count("Two believed to lead for 3.0 s.") == 2
    assert page.said.count("✗ FAILED") == 2
    assert page.said.count("✓ passed") == 1


def test_baselines_do_not_spoil_the_verdict() -> None:
    page = rendered(outcome(twice=6.0, provider="kazoo"), outcome())
    assert "Failover drills: 1 passed" in page.said
    assert "kazoo: 1 FAILED" in page.said


def test_a_tally_says_the_bad_news_first() -> None:
    assert tally("hybrid-ha", [made(), skipped("b", "no engine"), made(drill="c")]) == "1 NOT RUN, 2 passed"


def test_outcomes_of_one_drill_stand_together() -> None:
    ran = [made(provider="kazoo"), made(drill="b"), made(provider="curator"), made()]
    assert [(each.drill, each.provider) for each in arranged(ran)] == [
        ("kill", "hybrid-ha"),
        ("kill", "kazoo"),
        ("kill", "curator"),
        ("b", "hybrid-ha"),
    ]


def test_a_row_says_what_failed() -> None:
    assert why(made()) == ""
    assert why(skipped("a", "NOT RUN: the sandbox cannot cut networks.")) == "the sandbox cannot cut networks."
    assert why(outcome(twice=2.0)).startswith("one leader at a time: Two believed to lead")


@pytest.mark.parametrize(
    ("measures", "shown"),
    [
        ({}, "\N{EN DASH}"),
        ({"naps": 12_000}, "12,000"),
        ({"naps_seconds": 0.0123}, "12 ms"),
        ({"naps_seconds": 1234.5}, "1,234.50 s"),
        ({"naps_seconds": 8, "naps_bound_seconds": 7}, "8.00 s of 7.00 s"),
    ],
)
def test_a_figure_has_its_unit_and_its_bound(measures: dict[str, float], shown: str) -> None:
    assert figure(made(measures=measures), next(iter(measures), "naps")) == shown


def test_an_outcome_without_anything_is_a_section_too() -> None:
    bare = DrillOutcome(drill="bare", title="", group="", environment="", status="failed")
    page = Page(render(report(bare), {}))
    assert page.count("article") == 1


def test_an_empty_report_is_a_page() -> None:
    page = Page(render(report(), {}))
    assert "None were run." in page.said
    assert not page.count("table")


def test_everything_is_only_text() -> None:
    told = outcome()
    hostile = msgspec.structs.replace(
        told,
        drill=HOSTILE,
        title=HOSTILE,
        group=HOSTILE,
        environment=HOSTILE,
        provider=HOSTILE,
        reason=HOSTILE,
        status="failed",
        checks=[Check(HOSTILE, False, HOSTILE)],
        measures={HOSTILE: 1.0},
        faults=[msgspec.structs.replace(told.faults[0], what=HOSTILE)],
        events=HOSTILE,
    )
    whole = Report(
        version=HOSTILE, when=HOSTILE, machine={HOSTILE: HOSTILE}, settings={HOSTILE: 1.0}, outcomes=[hostile]
    )
    page = Page(render(whole, {Key.of(hostile): [*EVENTS, Fault(BEGAN, "", HOSTILE)]}))
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "{{ 7 * 7 }}" in page.said
    assert page.said.count("<script>alert(1)</script>") > 10
