"""The documentation agrees with the code and with itself: the reference is up to date, links lead somewhere."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import sphinx
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pyspark.sql.streaming.readwriter import DataStreamWriter

from docs.conf import NAVIGATION, html_search_scorer
from docs.reference.generate import FOLDER, pages
from ha.config.settings import reference
from tests.system.checkpoints import damage_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    {ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "docker" / "README.md"}
    | set(DOCS.rglob("*.md"))
    | {path for package in ("ha", "leader", "store") for path in (ROOT / package).rglob("DESIGN.md")}
)
LONGEST = 120


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", ["api.md", "commands.md", "settings.md"])
def test_the_reference_is_what_the_code_says(page: str) -> None:
    assert (FOLDER / page).read_text() == pages()[page], "run: python -m docs.reference.generate"


def test_what_a_program_may_ask_has_a_row_for_each_method_of_sparks_writer() -> None:
    table = (DOCS / "outputs.md").read_text().partition("| of Spark's `DataStreamWriter` |")[2].partition("\n\n")[0]
    asked = {word for row in table.splitlines() for word in re.findall(r"\w+", row.split("|")[1])}
    public = {each for each in dir(DataStreamWriter) if not each.startswith("_")}
    assert public - asked - {"foreachBatch"} == set(), "foreachBatch is a column"
    assert "`foreachBatch`" in table


def test_every_setting_has_a_text() -> None:
    assert all(each.text.endswith(".") for each in reference())


def test_the_page_of_damaged_files_is_what_was_run() -> None:
    found = json.loads(damage_page.FILE.read_text())
    assert damage_page.PAGE.read_text() == damage_page.page(found), (
        "run: python -m tests.system.checkpoints.damage_page"
    )


@pytest.mark.parametrize("path", [*PAGES, ROOT / "tests/system/flink_scenarios/SCENARIOS.md"], ids=name)
def test_lines_are_short(path: Path) -> None:
    """But for the rows of tables, which Markdown cannot break."""
    lines = path.read_text().splitlines()
    long = [number for number, line in enumerate(lines, 1) if len(line) > LONGEST and not line.startswith("|")]
    assert not long, f"{name(path)}: longer than {LONGEST} characters"


def parsed(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or []


@cache
def anchors(text: str) -> set[str]:
    """The names that a forge gives to headings; the second of the same name has -1 at its end."""
    found: Counter[str] = Counter()
    names = set()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for heading, inside in pairwise(tokens):
        if heading.type == "heading_open":
            plain = "".join(each.content for each in inside.children or [])
            slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
            names.add(f"{slug}-{found[slug]}" if found[slug] else slug)
            found[slug] += 1
    return names


@cache
def links(text: str) -> list[str]:
    targets = [token.attrs.get("href") or token.attrs.get("src") for token in parsed(text)]
    return [each for each in targets if isinstance(each, str) and not re.match(r"[a-z]+:", each)]


def broken(path: Path, text: str) -> list[str]:
    found = []
    for link in links(text):
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        page = text if target == path else target.read_text() if target.suffix == ".md" and target.exists() else ""
        if not target.exists() or (anchor and anchor not in anchors(page)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    assert not broken(path, path.read_text())


def test_the_search_of_the_site_scores_all_that_sphinx_scores_and_ranks_decisions_last() -> None:
    """A scorer of our own replaces Sphinx's as a whole: a name that it lacks would be no number."""
    ours = Path(html_search_scorer).read_text()
    script = (Path(sphinx.__file__).parent / "themes" / "basic" / "static" / "searchtools.js").read_text()
    assert set(re.findall(r"\bScorer\.(\w+)", script)) == set(re.findall(r"^  (\w+):", ours, re.MULTILINE))
    assert 'docname.startsWith("decisions/") ? score - 1000' in ours


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = [each.rpartition("<")[2].removesuffix(">") for pages in NAVIGATION.values() for each in pages]
    found = [path for each in listed for path in DOCS.glob(f"{each}.md")]
    assert sorted(found) == sorted(set(DOCS.rglob("*.md")) - {DOCS / "index.md"})


@pytest.mark.parametrize("path", [each for each in PAGES if each.is_relative_to(DOCS)], ids=name)
def test_pages_of_the_site_link_to_no_page_outside_of_it(path: Path) -> None:
    targets = [(path.parent / link.partition("#")[0]).resolve() for link in links(path.read_text())]
    assert not [each for each in targets if each.suffix == ".md" and not each.is_relative_to(DOCS)]


NAMED = re.compile(r"`((?:ha|leader|store|tests|benchmarks|examples|docker|docs)/[\w./-]+)`")


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_the_files_that_a_page_names_exist(path: Path) -> None:
    assert not [each for each in NAMED.findall(path.read_text()) if not (ROOT / each).exists()]


@pytest.mark.parametrize("path", [each for each in PAGES if each.name == "DESIGN.md"], ids=name)
def test_the_files_that_a_design_page_names_are_beside_it(path: Path) -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))`", path.read_text())
    assert [each for each in named if not (path.parent / each).exists() and not (ROOT / each).exists()] == []


def test_broken_links_are_found() -> None:
    headings = "# One, two\n\n## One, two\n\n"
    text = headings + "[a](#one-two) [b](#one-two-1) [c](#three) [d](LICENSE) [e](nothing.md) ![](no.svg)"
    assert broken(ROOT / "README.md", text) == ["#three", "nothing.md", "no.svg"]


@pytest.mark.parametrize("path", [DOCS / "security.md", DOCS / "protocol.md", DOCS / "reliability.md"], ids=name)
def test_the_tests_that_a_page_names_are_there(path: Path) -> None:
    named = set(re.findall(r"`(tests/[\w/.-]+)`", path.read_text()))
    assert named
    assert [each for each in sorted(named) if not (DOCS.parent / each).exists()] == []


def test_the_index_of_decisions_has_each_with_its_status() -> None:
    folder = DOCS / "decisions"
    rows = re.findall(
        r"^\| (\d+) \| \[(.+)\]\(([^)]+)\)(?:: (.+))? \|$", (folder / "index.md").read_text(), re.MULTILINE
    )
    told = {}
    for path in folder.glob("0*.md"):
        text = path.read_text()
        number, title = text.splitlines()[0].removeprefix("# ").split(". ", 1)
        last = re.sub(r"\[(\d+)\]\([^)]+\)", r"\1", text.strip().rpartition("\n\n")[2]).replace("\n", " ")
        status = re.fullmatch(r"Status: (in force|(?:amended|superseded) by [\w ]+)[.:].*", last)
        assert status, f"{path.name} ends with its status"
        told[path.name] = (number, title, status[1])
    assert {page: (number, title, status or "in force") for number, title, page, status in rows} == told
    assert len(rows) == len(told), "each is listed once"
