"""How large the project may be: a change that adds more takes away elsewhere, or changes this file with it."""

from collections import Counter
from pathlib import Path

import pytest

from tests.unit.test_architecture import MODULES, ROOT, uses

MOST_LINES = {"product": 70_700, "tests": 109_100, "benchmarks": 8_500}
"""Of Python; see decision 93 for what was wanted, and what was not given up for it."""

MOST_WORDS = 90_000  # of README and docs
MOST_CLOSETS = 0.2  # share of the modules that one other module alone imports


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in (ROOT / folder).rglob("*.py")]


@pytest.mark.parametrize("part", MOST_LINES)
def test_what_is_added_is_paid_for(part: str) -> None:
    found = MODULES.values() if part == "product" else files(part)
    assert sum(len(path.read_text().splitlines()) for path in found) <= MOST_LINES[part]


def test_the_docs_can_be_read() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert sum(len(page.read_text().split()) for page in pages) <= MOST_WORDS


def test_few_modules_have_one_user_alone() -> None:
    """A module that one other one imports is a part of that one, unless it is a concept of its own."""
    users = Counter(each for used in uses().values() for each in used)
    parts = [module for module, path in MODULES.items() if path.name not in {"__init__.py", "__main__.py"}]
    assert sum(users[each] == 1 for each in parts) < MOST_CLOSETS * len(parts)
