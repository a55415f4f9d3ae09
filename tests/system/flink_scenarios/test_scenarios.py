"""SCENARIOS.md: every scenario of Flink's suites has one answer, and the tests named in answers exist."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLE = Path(__file__).with_name("SCENARIOS.md")

_SECTION = re.compile(r"## (?P<number>\d+) (?P<title>.+) \((?P<rows>\d+) rows\)")
_TEST = re.compile(r"`(?P<file>tests/[a-z0-9_/]+\.py)::(?P<name>test_[a-z0-9_]+)`")
_SENTENCE = re.compile(r"[A-Za-z][^.!?]{20,}\.")

CANNOT = "cannot occur: "


@dataclass(frozen=True)
class Row:
    section: int
    suite: str
    scenario: str
    meaning: str
    answer: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        return [(match["file"], match["name"]) for match in map(_TEST.fullmatch, self.answer.split("<br>")) if match]


@dataclass(frozen=True)
class Table:
    rows: list[Row]
    stated: dict[int, int]


def parse(text: str) -> Table:
    """Read the table; a line that is neither a title, nor text above the first section, nor a row is an error."""
    rows: list[Row] = []
    stated: dict[int, int] = {}
    suite = ""
    for line in text.splitlines():
        if match := _SECTION.fullmatch(line):
            stated[int(match["number"])] = int(match["rows"])
            suite = ""
        elif line.startswith("### "):
            suite = line.removeprefix("### ")
        elif not stated or not line or line in ("| scenario | what it means | answer |", "|---|---|---|"):
            continue
        else:
            cells = [cell.strip() for cell in line.split("|")]
            assert len(cells) == 5, f"no row of three cells: {line}"
            assert cells[0] == cells[-1] == "", f"no row: {line}"
            rows.append(Row(max(stated), suite, *cells[1:-1]))
    return Table(rows, stated)


def kind(row: Row) -> str:
    """Which kind of answer a row has.

    Raises:
        AssertionError: none, or more than one.
    """
    if row.answer.startswith(CANNOT):
        reason = row.answer.removeprefix(CANNOT)
        assert _SENTENCE.fullmatch(reason), f"not one sentence: {row}"
        assert "`" not in reason, f"a reason and a test: {row}"
        return CANNOT
    assert len(row.tests) == len(row.answer.split("<br>")), f"no answer: {row}"
    assert len(set(row.tests)) == len(row.tests), f"a test is named twice: {row}"
    return "tests"


def kinds(text: str) -> list[str]:
    """Which kind of answer each row has; raises as :func:`kind` does."""
    return [kind(row) for row in parse(text).rows]


@cache
def names_in(file: str) -> frozenset[str]:
    path = ROOT / file
    if not path.exists():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


@pytest.fixture(scope="module")
def table() -> Table:
    return parse(TABLE.read_text(encoding="utf-8"))


def test_no_row_has_gone(table: Table) -> None:
    assert Counter(row.section for row in table.rows) == table.stated
    assert list(table.stated) == list(range(1, 26))


def test_every_row_has_one_answer(table: Table) -> None:
    for row in table.rows:
        assert row.scenario, row
        assert row.meaning, row
        assert kind(row), row


def test_no_scenario_is_there_twice(table: Table) -> None:
    count = Counter((row.section, row.suite, row.scenario) for row in table.rows)
    assert [scenario for scenario, times in count.items() if times > 1] == []


def test_the_tests_that_are_named_exist(table: Table) -> None:
    named = {test for row in table.rows for test in row.tests}
    assert sorted(f"{file}::{name}" for file, name in named if name not in names_in(file)) == []


GOOD = """
# Title

Some text.

## 1 First (2 rows)

### Suite

| scenario | what it means | answer |
|---|---|---|
| one | this | `tests/system/flink_scenarios/test_scenarios.py::test_what_is_wrong_is_noticed` |
| two | that | cannot occur: there is nothing here that could do it. |
"""


def test_what_is_right_is_read() -> None:
    table = parse(GOOD)
    assert table.stated == {1: 2}
    assert kinds(GOOD) == ["tests", CANNOT]
    assert table.rows[0] == Row(1, "Suite", "one", "this", GOOD.splitlines()[-2].split("|")[3].strip())
    ((file, name),) = table.rows[0].tests
    assert name in names_in(file)
    assert name not in names_in("tests/system/flink_scenarios/test_no_such_file.py")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| two |", "two |"),
        ("| that |", "| that | and |"),
        ("could do it.", "could do it"),
        ("there is nothing here that could do it.", "no."),
        ("there is nothing here", "nothing. There is nothing here"),
        ("cannot occur: there", "there"),
        ("could do it.", "could do `tests/system/flink_scenarios/test_x.py::test_x`."),
        ("noticed`", "noticed`<br>"),
        ("noticed`", "noticed` and more"),
    ],
)
def test_what_is_wrong_is_noticed(old: str, new: str) -> None:
    """The canary: a check that finds nothing wrong in anything would prove nothing."""
    assert GOOD.count(old) == 1
    with pytest.raises(AssertionError):
        kinds(GOOD.replace(old, new))
