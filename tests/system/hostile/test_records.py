"""Hostile bytes: in ZooKeeper's nodes, and in the files that processes of this host share."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ha.agent import snapshots as wire
from ha.program.deadline_file import DeadlineReader
from leader.lookup.answers import Snapshot
from store.clock import now
from tests.system.hostile.properties import records
from tests.system.hostile.properties.scratch import file_of
from tests.system.hostile.strategies import HOSTILE_BYTES, HOSTILE_SNAPSHOTS, SNAPSHOTS, examples

BELIEFS = st.builds(struct.Struct("<Qdddd").pack, st.integers(0, 9), *[st.floats()] * 4)


@pytest.mark.parametrize("holds", records.ALL, ids=lambda each: each.__name__)
def test_no_bytes_are_taken_for_what_they_are_not(holds: Callable[[bytes], None]) -> None:
    @examples(100)
    @given(HOSTILE_BYTES | BELIEFS)
    @example(b"[" * 65_000)
    @example(b'{"a":' * 13_000)
    @example(b'{"format":' + b"9" * 65_000)
    @example(b"cafe0123\n")
    def check(data: bytes) -> None:
        holds(data)

    check()


@pytest.mark.parametrize("holds", [records.snapshot, records.beat], ids=lambda each: each.__name__)
def test_no_file_is_taken_for_a_snapshot_that_is_none(holds: Callable[[bytes], None]) -> None:
    @examples(300)
    @given(HOSTILE_SNAPSHOTS)
    @example(b"00000000\n\n")
    @example(b"[" * 65_000)
    def check(data: bytes) -> None:
        holds(data)

    check()


@examples(100)
@given(SNAPSHOTS)
def test_every_snapshot_is_read_back(told: Snapshot) -> None:
    data = wire.encode(told, records.ORIGIN, records.AUDIT)
    records.snapshot(data)
    assert wire.decode(data, "orders", records.ORIGIN, records.AUDIT) == told
    assert wire.decode(data, "orders", records.ORIGIN, records.AUDIT - 1) is None


@examples(100)
@given(BELIEFS)
def test_a_belief_of_any_numbers_makes_a_leader_only_of_those_near_by(data: bytes) -> None:
    records.belief(data)


@examples(100)
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_every_belief_of_a_sidecar_is_read_back(leads: float, holds: float) -> None:
    written = now() + leads, now() + holds
    data = struct.pack("<Qdddd", 2, *written, 0.0, 0.0)
    records.belief(data)
    assert DeadlineReader(file_of("belief", data)).read() == written
