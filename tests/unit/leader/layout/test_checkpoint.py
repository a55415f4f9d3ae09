"""Names of completed checkpoints: they are read back as written, and they always fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader.errors import InvalidName
from leader.layout.checkpoint import MAX_ID, NOTHING, Checkpoint, CheckpointEntry, Metadata, fit
from store.files import MAX_COMPONENT_BYTES

ALL = Metadata(850, 7, 20, 4096, "orders=12")
MOST = Metadata(MAX_ID, MAX_ID, MAX_ID, MAX_ID, "orders=12")


def test_a_name_can_be_read_by_people() -> None:
    assert CheckpointEntry(Checkpoint("daily", 4, 17, ALL), 2).name == "daily=4~17~2~850~7~20~4096~orders_3d12"
    assert CheckpointEntry(Checkpoint("daily", 4, 17)).name == "daily=4~17~1~~~~~"


def test_zero_and_a_missing_number_differ() -> None:
    entry = CheckpointEntry(Checkpoint("daily", 0, 1, Metadata(rows=0)))
    assert entry.name == "daily=0~1~1~~0~~~"
    assert CheckpointEntry.parse(entry.name) == entry


@pytest.mark.parametrize(
    "name",
    [
        "daily=4", "daily=4~17", "daily=4~17~1~~~~", "daily=4~17~1~~~~~~", "daily=04~17~1~~~~~", "daily=4~0~1~~~~~",
        "daily=4~17~0~~~~~", "daily=4~17~01~~~~~", "daily=4~17~10000~~~~~", "daily=4~17~1~007~~~~",
        "daily=4~17~1~~-1~~~", "daily=4~17~1~~~~~_4f", "daily=4~17~1~~~~~_zz", "=4~17~1~~~~~", "next=4~17~1~~~~~",
        "daily=\u0664~17~1~~~~~", f"daily={10**18}~17~1~~~~~",
    ],
)  # fmt: skip
def test_another_spelling_is_not_accepted(name: str) -> None:
    assert CheckpointEntry.parse(name) is None


@given(st.text(min_size=1, max_size=30), st.integers(0, MAX_ID), st.integers(1, MAX_ID))
def test_the_entry_of_a_query_is_never_the_counter(query: str, batch: int, number: int) -> None:
    try:
        checkpoint = fit(Checkpoint(query, batch, number))
    except InvalidName:
        return
    assert not CheckpointEntry(checkpoint).name.startswith("next=")


def test_offsets_that_are_too_long_are_cut_and_the_name_is_full() -> None:
    cut = fit(Checkpoint("daily", 4, 17, Metadata(850, 7, 20, 4096, "ä" * 300)))
    assert cut.metadata.offsets == "ä" * (len(cut.metadata.offsets) - 3) + "..."
    longest = CheckpointEntry(cut, 9999)
    assert MAX_COMPONENT_BYTES - 6 < len(longest.name) <= MAX_COMPONENT_BYTES
    assert CheckpointEntry.parse(longest.name) == longest
    assert fit(cut) == cut


def test_offsets_go_first_and_then_the_numbers() -> None:
    assert fit(Checkpoint("q" * 100, MAX_ID, MAX_ID, MOST)).metadata == MOST
    without_offsets = Metadata(MAX_ID, MAX_ID, MAX_ID, MAX_ID)
    assert fit(Checkpoint("q" * 133, MAX_ID, MAX_ID, MOST)).metadata == without_offsets
    assert fit(Checkpoint("q" * 207, MAX_ID, MAX_ID, MOST)).metadata == NOTHING


TOO_LONG = r"The name of query '.*' is too long: .* 255 are allowed"


@pytest.mark.parametrize(
    ("query", "says"), [("", "set queryName"), *((query, TOO_LONG) for query in ("q" * 208, "ä" * 100, "_" * 70))]
)
def test_a_query_without_a_name_or_with_one_that_is_too_long_is_refused_at_its_first_batch(
    query: str, says: str
) -> None:
    with pytest.raises(InvalidName, match=says):
        fit(Checkpoint(query, 0, 1))


@pytest.mark.parametrize(
    "metadata", [Metadata(-1), Metadata(rows=-1), Metadata(state_rows=MAX_ID + 1), Metadata(state_bytes=MAX_ID + 1)]
)
def test_numbers_that_cannot_be_read_back_are_refused(metadata: Metadata) -> None:
    with pytest.raises(InvalidName, match=r"(duration_ms|rows|state_\w+) of a checkpoint is -?\d+: it must be from 0"):
        fit(Checkpoint("daily", 0, 1, metadata))
