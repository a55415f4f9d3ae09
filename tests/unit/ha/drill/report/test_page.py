"""Tests of the page: complete, self-contained, and with all data escaped as text."""

from html.parser import HTMLParser

import msgspec
import pytest

from ha.drill.outcome import Check, Outcome, Report
from ha.drill.report.pages import render
from ha.drill.report.picture import timeline
from ha.drill.report.tables import Key
from tests.unit.ha.drill.report.synthetic import Story, history, many_drills, outcome, report, skipped

pytestmark = pytest.mark.slow  # each computes for a tenth of a second and more

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&amp;'
VOID = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """Content of a page."""

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


def rendered(*outcomes: Outcome) -> Page:
    pictures = {Key.of(each): timeline(each, history(Story())) for each in outcomes if each.status != "skipped"}
    return Page(render(report(*outcomes), pictures))


def test_each_drill_has_a_row_a_section_and_a_picture() -> None:
    page = rendered(outcome("kill", Story(), what="kill"), outcome("stop", Story(seed=2), what="stop"))
    targets = [link.removeprefix("#") for link in page.having("href") if link.startswith("#")]
    assert targets == ["kill-sandbox-hybrid-ha", "stop-sandbox-hybrid-ha"]
    assert set(targets) <= set(page.having("id"))
    assert page.count("svg") == 2
    assert "recovery: fault to the next leader" in page.said


def test_it_needs_nothing_from_elsewhere() -> None:
    page = rendered(outcome("kill", Story(), what="kill"))
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "base"}
    assert not page.having("src")
    assert all(link.startswith("#") for link in page.having("href"))
    assert "default-src 'none'" in " ".join(page.having("content"))


def test_what_was_not_run_is_said_three_times() -> None:
    page = rendered(outcome("kill", Story(), what="kill"), skipped("cut", "no engine answered"))
    assert page.said.count("NOT RUN") == 5, "title, heading, summary, and twice in its own section"
    assert page.said.count("no engine answered") == 3
    assert page.count("svg") == 1


def test_what_failed_is_said_with_its_detail() -> None:
    page = rendered(outcome("kill", Story(twice=3.0), what="kill"))
    assert "Failover drills: 1 FAILED" in page.said
    assert page.said.count("Two believed to lead for 3.0 s.") == 2
    assert page.said.count("✗ FAILED") == 2
    assert page.said.count("✓ passed") == 1


def test_others_are_compared_and_do_not_spoil_the_verdict() -> None:
    page = rendered(
        outcome("kill", Story(), what="kill"), outcome("kill", Story(twice=6.0), what="kill", provider="kazoo")
    )
    assert "Failover drills: 1 passed" in page.said
    assert page.count("table", "compared") == 1
    assert page.count("section", "alert") == 0
    assert page.count("td", "best") == page.count("td", "worst") == 3
    assert page.said.count("▲") == page.count("td", "best") + 1, "and once in the note: it is not said by colour alone"
    assert not rendered(outcome("kill", Story(), what="kill")).count("table", "compared")


def test_an_outcome_without_anything_is_a_section_too() -> None:
    bare = Outcome(drill="bare", title="", group="", environment="", status="failed")
    page = Page(render(report(bare), {}))
    assert "no reason was given" in page.said
    assert page.count("article") == 1


def test_an_empty_report_is_a_page() -> None:
    page = Page(render(report(), {}))
    assert "None were run." in page.said
    assert not page.count("table")


def test_everything_is_only_text() -> None:
    told = outcome("kill", Story(), what="kill")
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
    page = Page(render(whole, {Key.of(hostile): timeline(hostile, history(Story()))}))
    assert not {tag for tag, _ in page.tags} & {"script", "img"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "{{ 7 * 7 }}" in page.said
    assert page.said.count("<script>alert(1)</script>") > 10


@pytest.mark.slow
def test_forty_drills_are_less_than_a_megabyte_and_a_half() -> None:
    found, histories = many_drills(8)
    drawn = [timeline(each, histories[Key.of(each)]) for each in found.outcomes]
    again = [msgspec.structs.replace(found.outcomes[n % 8], drill=f"drill-{n}") for n in range(40)]
    found, pictures = report(*again), {Key.of(each): drawn[n % 8] for n, each in enumerate(again)}
    text = render(found, pictures)
    assert len(text.encode()) < 1_500_000
    page = Page(text)
    assert page.count("article") == page.count("svg") == 40
