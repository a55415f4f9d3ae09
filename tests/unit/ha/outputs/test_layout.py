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
    with pytest.raises(InvalidSettings, match=why):
        layout.check_columns(["day", column], layout.BATCH, layout.REGION)


def test_a_text_is_no_list_of_columns() -> None:
    with pytest.raises(InvalidSettings, match=r"such as \['day'\]"):
        layout.check_columns("day")


def test_columns_that_are_a_partition_s() -> None:
    layout.check_columns(["day", "_day", "batches", "region"], layout.BATCH)
    layout.check_columns(["batch"])


def test_ids_are_numbers_as_they_are_written_here() -> None:
    assert layout.ids(["10", "9", "07", "x", "-1", "\u0661", ""]) == [9, 10]


@pytest.mark.parametrize(("batch", "shift"), [(0, 0), (3, 0), (4, 3), (5, 3), (6, 5), (99, 5)])
def test_the_newest_shift_counts(batch: int, shift: int) -> None:
    assert layout.shift(batch, ["ready", "shift=4~3", "shift=6~5", "shift=x", "shift=04~9"]) == shift


def test_a_shift_is_made_only_where_the_number_changes() -> None:
    assert layout.shifts_after(3, [], 0) == []
    assert layout.shifts_after(3, [], 2) == ["shift=4~2"]
    assert layout.shifts_after(4, ["shift=4~2", "shift=5~7"], 2) == ["shift=4~2"]
    assert layout.shifts_after(3, ["shift=4~2"], 0) == []
    assert layout.shifts_after(9, ["shift=4~2"], 5) == ["shift=4~2", "shift=10~5"]
