"""Hostile names: a name that is accepted is written in the same way; any other gives None or one of our errors."""

from collections.abc import Callable

import pytest
from hypothesis import example, given

from leader.layout.checkpoint import CheckpointEntry
from store.files import MAX_COMPONENT_BYTES
from tests.system.hostile.properties import names
from tests.system.hostile.strategies import CHECKPOINT_ENTRIES, HOSTILE_TEXTS, LISTINGS, damaged, examples

TURKISH = "\u0130"
ZERO = "\u0660"


@pytest.mark.parametrize("holds", names.ALL, ids=lambda each: each.__name__)
def test_no_text_is_taken_for_what_it_is_not(holds: Callable[[str], None]) -> None:
    @examples(100)
    @given(HOSTILE_TEXTS)
    @example("")
    @example(f"{ZERO * 10}-{names.OWNER}")
    @example(f"lease~{'9' * 10}~hdfs~0~{names.OWNER}~~a~_any")
    @example(TURKISH * 128)
    @example("9" * 5000)
    def check(text: str) -> None:
        holds(text)

    check()


@examples(100)
@given(damaged(LISTINGS))
def test_a_damaged_listing_reads_the_same_in_any_order(text: str) -> None:
    names.record(text)


@examples(200)
@given(CHECKPOINT_ENTRIES)
def test_every_checkpoint_is_read_back(entry: CheckpointEntry) -> None:
    assert CheckpointEntry.parse(entry.name) == entry
    assert len(entry.name) <= MAX_COMPONENT_BYTES
