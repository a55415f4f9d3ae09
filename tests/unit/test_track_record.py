"""The track record: each bug of docs/reliability.md is in the table of mends, and what the table names is there."""

import ast
from functools import cache

import pytest

from tests.system.mutants.copies import ROOT
from tests.system.track_record.bugs import BUGS, Bug, rows

ALL = pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: f"bug-{bug.number}")


@cache
def functions(path: str) -> set[str]:
    """The names of a module's tests."""
    return {each.name for each in ast.parse((ROOT / path).read_text()).body if isinstance(each, ast.FunctionDef)}


def test_each_row_has_an_entry_and_each_entry_a_row() -> None:
    assert [number for number, _, _ in rows()] == sorted(BUGS) == list(range(1, len(BUGS) + 1))


@ALL
def test_an_entry_has_a_mend_and_a_test_or_says_why_not(bug: Bug) -> None:
    assert bool(bug.mend) == bool(bug.test) != bool(bug.why_not)


@ALL
def test_each_mend_stands_once_in_its_file(bug: Bug) -> None:
    for path, now, without in bug.mend:
        assert (ROOT / path).read_text().count(now) == 1, f"{path}: {now}"
        assert now != without


@ALL
def test_each_test_is_there(bug: Bug) -> None:
    path, _, name = bug.test.partition("::")
    assert bug.why_not or name.partition("[")[0] in functions(path)
