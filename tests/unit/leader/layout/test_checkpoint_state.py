"""The mirror of the checkpoints in ZooKeeper: read back as written, small, and not confused with other data."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader.layout.checkpoint import MAX_ID, NOTHING, Checkpoint, Metadata
from leader.layout.checkpoint_state import CheckpointState, decode, encode
from leader.layout.information import MAX_RECORD_BYTES
from tests.unit.leader.samples import SESSION_IDS, A

NUMBERS = st.none() | st.integers(0, MAX_ID)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
CHECKPOINTS = st.builds(
    Checkpoint,
    TEXTS,
    st.integers(0, MAX_ID),
    st.integers(1, MAX_ID),
    st.builds(Metadata, NUMBERS, NUMBERS, NUMBERS, NUMBERS, TEXTS),
)
STATES = st.builds(
    CheckpointState,
    job=st.just("orders"),
    epoch=st.integers(1, 9_999_999_999),
    session_id=SESSION_IDS,
    next_id=st.integers(1, MAX_ID),
    latest=st.lists(CHECKPOINTS).map(lambda found: {each.query: each for each in found}),
)
GOOD = CheckpointState("orders", 7, A, 3, {"daily": Checkpoint("daily", 2, 1, Metadata(850, 7, 20, 4096, "orders=12"))})


def written(state: CheckpointState) -> bytes:
    data = encode(state)
    assert data is not None
    return data


@given(STATES)
def test_a_record_is_read_back(state: CheckpointState) -> None:
    assert decode(written(state), "orders") == state


@pytest.mark.parametrize(
    "fields",
    [
        {"format": 1}, {"format": 3}, {"job": "payments"}, {"epoch": 0}, {"epoch": 10**10}, {"session_id": "x"},
        {"next_id": 0}, {"next_id": -1}, {"next_id": 1.5}, {"next_id": 10**18},
        {"latest": {"daily": {"batch": -1, "id": 1}}}, {"latest": {"daily": {"batch": "2", "id": 1}}},
        {"latest": {"daily": {"batch": 2}}}, {"latest": {"daily": {"batch": 2, "id": 0}}},
        {"latest": {"daily": {"batch": 2, "id": 1, "rows": -1}}},
        {"latest": {"daily": {"batch": 2, "id": 1, "state_bytes": 10**18}}},
        {"latest": {"daily": {"batch": 2, "id": 1, "offsets": None}}}, {"latest": {"daily": 2}}, {"latest": []},
    ],
    ids=str,
)  # fmt: skip
def test_a_foreign_record_is_ignored(fields: dict[str, Any]) -> None:
    assert decode(json.dumps({**json.loads(written(GOOD)), **fields}).encode(), "orders") is None


@given(st.binary() | st.integers(0, len(written(GOOD)) - 1).map(lambda length: written(GOOD)[:length]))
def test_hostile_and_truncated_bytes_are_none(data: bytes) -> None:
    assert decode(data, "orders") is None


def test_a_huge_record_is_ignored() -> None:
    assert decode(written(GOOD) + b" " * 70_000, "orders") is None
    assert decode(b"[" * 60_000, "orders") is None


def many(count: int) -> CheckpointState:
    found = [
        Checkpoint(f"query-{number}", number, number + 1, Metadata(1, 2, 3, 4, "x" * 100)) for number in range(count)
    ]
    return CheckpointState("orders", 7, A, 9999, {each.query: each for each in found})


def test_too_many_queries_lose_their_metadata_first_and_then_have_no_record() -> None:
    few, more = decode(written(many(200)), "orders"), decode(written(many(1000)), "orders")
    assert few == many(200)
    assert more is not None
    assert more.queries == many(1000).queries
    assert {each.metadata for each in more.latest.values()} == {NOTHING}
    assert len(written(many(1000))) <= MAX_RECORD_BYTES
    assert encode(many(3000)) is None
