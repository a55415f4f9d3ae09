"""The layout of a journal."""

import pytest

from ha.outputs import layout
from leader.errors import InvalidSettings


def test_paths_of_a_batch() -> None:
    assert layout.ready(7) == "ready/7"
    assert [layout.done(batch) for batch in (0, 999, 1000)] == ["done/0/0", "done/0/999", "done/1/1000"]
    assert layout.place("", 7) == "batch=7"
    assert layout.place("day=1/hour=2", 7) == "day=1/hour=2/batch=7"


def test_an_output_is_named_after_its_target() -> None:
    assert layout.home("a", "out/1") != layout.home("a", "out/2")
    assert layout.home("a", "out/1").startswith("out/a-")


@pytest.mark.parametrize(
    ("name", "hidden"),
    [("part-0", False), ("_SUCCESS", True), (".part-0.crc", True), ("_day=1", False), (".day=1", True), ("_", True)],
)
def test_what_sparks_readers_ignore(name: str, hidden: bool) -> None:
    assert layout.hidden(name) is hidden


@pytest.mark.parametrize(
    ("column", "why"), [(".day", "Readers skip"), ("Batch", "folders batch="), ("region", "folders region=")]
)
def test_columns_that_readers_would_skip_or_find_twice(column: str, why: str) -> None:
    layout.check_columns(["day", "_day", "batches"], layout.BATCH, layout.REGION)
    layout.check_columns([column[1:], "batch"])
    with pytest.raises(InvalidSettings, match=why):
        layout.check_columns(["day", column], layout.BATCH, layout.REGION)


def test_a_text_is_no_list_of_columns() -> None:
    with pytest.raises(InvalidSettings, match=r"such as \['day'\]"):
        layout.check_columns("day")


def test_ids_are_numbers_as_they_are_written_here() -> None:
    assert layout.ids(["10", "9", "07", "x", "-1", "\u0661", ""]) == [9, 10]
