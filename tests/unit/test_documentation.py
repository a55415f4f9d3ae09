"""The documentation agrees with the code and with itself: the reference is up to date, links lead somewhere."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from docs.conf import NAVIGATION
from docs.reference.generate import FOLDER, pages
from ha.config.settings import reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    {ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "docker" / "README.md"}
    | set(DOCS.rglob("*.md"))
)
LONGEST = 120


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- the reference


@pytest.mark.parametrize("page", ["api.md", "commands.md", "settings.md"])
def test_the_reference_is_what_the_code_says(page: str) -> None:
    assert (FOLDER / page).read_text() == pages()[page], "run: python -m docs.reference.generate"


def test_every_setting_has_a_text() -> None:
    assert all(each.text.endswith(".") for each in reference())


# --- lines


@pytest.mark.parametrize("path", [*PAGES, ROOT / "tests/system/flink_scenarios/SCENARIOS.md"], ids=name)
def test_lines_are_short(path: Path) -> None:
    """But for the rows of tables, which Markdown cannot break."""
    lines = path.read_text().splitlines()
    long = [number for number, line in enumerate(lines, 1) if len(line) > LONGEST and not line.startswith("|")]
    assert not long, f"{name(path)}: longer than {LONGEST} characters"


# --- links


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


def test_broken_links_are_found() -> None:
    """The canary."""
    headings = "# One, two\n\n## One, two\n\n"
    text = headings + "[a](#one-two) [b](#one-two-1) [c](#three) [d](LICENSE) [e](nothing.md) ![](no.svg)"
    assert broken(ROOT / "README.md", text) == ["#three", "nothing.md", "no.svg"]


@pytest.mark.parametrize("path", [DOCS / "security.md", DOCS / "protocol.md", DOCS / "reliability.md"], ids=name)
def test_the_tests_that_a_page_names_are_there(path: Path) -> None:
    named = set(re.findall(r"`(tests/[\w/.-]+)`", path.read_text()))
    assert named
    assert [each for each in sorted(named) if not (DOCS.parent / each).exists()] == []
