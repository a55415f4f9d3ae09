"""The entry of the record that bars a contender."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader.errors import InvalidName
from leader.layout.bar import Bar, barred_until, bars
from leader.layout.information import Record
from leader.timing import PAST

PRINTABLE = st.text(st.sampled_from("aZ0.-_~% é😀"), max_size=9)


@given(st.sampled_from(["a", "host-1.example"]), st.integers(0, 10**11 - 1), PRINTABLE, PRINTABLE)
def test_it_is_read_back(contender: str, until: int, by: str, reason: str) -> None:
    bar = Bar(contender, until, by, reason)
    assert Bar.parse(bar.name) == bar


@pytest.mark.parametrize(
    "name",
    [
        "barred~", "barred~a~1~b", "barred~a~01~b~c", "barred~a~-1~b~c", "barred~a~1~b~c~d", "barred~-a~1~b~c",
        "barred~a~1~_0a~c", "x~a~1~b~c",
    ],
)  # fmt: skip
def test_a_strange_name_is_none_of_ours(name: str) -> None:
    assert Bar.parse(name) is None


def test_a_reason_is_bounded_by_the_length_of_a_name() -> None:
    longest = 255 - len("barred~a~1~ada~")
    assert len(Bar("a", 1, "ada", "x" * longest).name) == 255
    with pytest.raises(InvalidName, match=f"takes {longest + 1} bytes"):
        _ = Bar("a", 1, "ada", "x" * (longest + 1)).name
    with pytest.raises(InvalidName, match="cannot be shown"):
        _ = Bar("a", 1, "ada", "two\nlines").name
    with pytest.raises(InvalidName, match="contender"):
        _ = Bar("no name", 1).name


def test_of_several_bars_of_a_contender_the_last_to_end_counts() -> None:
    early, late, other = Bar("a", 5, "zoe"), Bar("a", 6, "ada"), Bar("b", 9)
    record = Record.parse([early.name, late.name, other.name, "barred~strange"])
    assert bars(record) == {"a": late, "b": other}
    assert barred_until(record, "a", 100.0, 4.0) == 102.0
    assert barred_until(record, "a", 100.0, 6.0) == PAST, "it has just ended"
    assert barred_until(record, "c", 100.0, 4.0) == PAST


def test_it_is_told_in_one_line() -> None:
    assert str(Bar("a", 1_700_000_000, "ada", "disks")) == "barred by ada until 2023-11-14T22:13:20Z (disks)"
    assert str(Bar("a", 1_700_000_000)) == "barred until 2023-11-14T22:13:20Z"
