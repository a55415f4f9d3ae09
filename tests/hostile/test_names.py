"""Names from anywhere: what reads as ours is written just so, and everything else is None or an error of ours."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leader.checkpoints import MAX_ID, QueryEntry, parse_query, query_entry
from leader.information import EndpointEntry
from leader.lease import Lease
from leader.names import MAX_WRITING, LeaderDirectory
from leader.operations import PastGrant
from tests.hostile.properties import names
from tests.hostile.strategies import (
    DIRECTORIES,
    ENDPOINT_ENTRIES,
    HISTORY,
    HOSTILE_TEXTS,
    LEASES,
    LISTINGS,
    PRINTABLE,
    damaged,
    examples,
)

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


@examples(60)
@given(DIRECTORIES, LEASES, ENDPOINT_ENTRIES, HISTORY)
def test_every_name_is_read_back(directory: LeaderDirectory, lease: Lease, entry: EndpointEntry, grant: str) -> None:
    assert LeaderDirectory.parse(directory.name) == directory
    assert Lease.parse(lease.name) == lease
    assert len(entry.name) > 255 or EndpointEntry.parse(entry.name) in (entry, None)
    assert PastGrant.parse(grant, 5) is not None


@examples(100)
@given(
    st.text(PRINTABLE, min_size=1, max_size=60) | st.sampled_from(["next", ".staging", ".", "_6eext"]),
    st.integers(0, MAX_ID),
    st.integers(1, MAX_WRITING),
)
def test_every_query_is_read_back(query: str, batch: int, writing: int) -> None:
    assert parse_query(query_entry(query, batch, writing)) == (query, QueryEntry(batch, writing))
