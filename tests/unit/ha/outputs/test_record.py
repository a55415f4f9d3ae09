"""Records in names: what was written is read, whatever it is, and nothing else is taken for a record."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.outputs.record import FILES, LOST, TARGET, Record, Target
from leader.errors import Unreadable
from leader.layout.packed_names import TEXT, read, written
from store import paths

names = st.text(min_size=1, max_size=20)
records = st.builds(
    Record,
    st.dictionaries(names, st.dictionaries(names, st.integers(0, 1 << 60), min_size=1), max_size=20),
    rows=st.dictionaries(names, st.integers(0, 1 << 60), max_size=20),
)


@given(records, st.randoms(use_true_random=False))
def test_what_was_written_is_read(record: Record, mixed: random.Random) -> None:
    found = [*written(FILES, record), "rows", *written(TARGET, Target("/out"))]
    mixed.shuffle(found)
    assert read(FILES, Record, found) == record
    assert read(LOST, Record, found) is None
    for name in found:
        paths.check(name)


def test_a_record_that_names_no_batch_before_it_is_of_the_first_one() -> None:
    """It is left out of the name; a version that took that for another batch would miss no gap, or one too many."""
    record = Record({"": {"part-0": 1}})
    assert (record.after, written(FILES, record)) == (-1, written(FILES, Record(record.partitions, after=-1)))
    assert msgspec.json.encode(record) == b'{"partitions":{"":{"part-0":1}}}'


def test_a_few_files_fit_in_one_name_and_many_in_few() -> None:
    def of(count: int) -> Record:
        unique = "1b4f0e98-51b1-4c2c-9a3f-3c3a8f0f9a55"
        return Record({"": {f"part-{number:05d}-{unique}-c000.json": 1000 + number * 37 for number in range(count)}})

    assert len(written(FILES, of(10))) == 1
    assert len(written(FILES, of(100))) < 6
    assert all(len(name) < 255 for name in written(FILES, of(1000)))


def test_a_name_more_or_less_makes_it_unreadable() -> None:
    found = written(FILES, Record({str(number): {str(number * 7919): number} for number in range(200)}))
    assert len(found) > 2
    for one in range(len(found)):
        with pytest.raises(Unreadable, match="somebody has deleted or made some"):
            read(FILES, Record, found[:one] + found[one + 1 :])
    with pytest.raises(Unreadable, match="somebody has deleted or made some"):
        read(FILES, Record, [*found, f"{found[0][:-1]}x"])


@pytest.mark.parametrize("text", ["A", "AAAA", "x" * TEXT, written(FILES, Record({"": {"a": 1}}))[0][10:-4]])
def test_what_somebody_else_has_made_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable, match=r"were not made by this package|do not hold a whole text"):
        read(FILES, Record, [f"files=1~1~{text}"])


def test_what_one_record_has_and_another_has_not() -> None:
    whole = Record({"a": {"1": 10, "2": 20}, "b": {"3": 30}})
    there = Record({"a": {"1": 10, "2": 19}})
    assert whole.without(there) == Record({"a": {"2": 20}, "b": {"3": 30}})
    assert whole.without(whole) == Record({})
    assert (whole.files, whole.bytes) == (3, 60)
    assert whole.without(there).paths() == ["a/2", "b/3"]
    assert Record({"": {"4": 1}}).paths() == ["4"]


def test_rows_are_told_of_all_partitions_or_of_none() -> None:
    files = {"a": {"1": 10}, "b": {"2": 20}}
    assert Record(files).row_count is None
    assert Record(files, rows={"a": 3}).row_count is None
    assert Record(files, rows={"a": 3, "b": 0}).row_count == 3
    assert Record({}).row_count == 0
