"""Metadata from Spark's progress. ``test_checkpoints.py`` checks the form of the progress with a real Spark."""

import json
from typing import Any

import pytest

from ha.spark.query_events import read, summary
from leader.layout.checkpoint import NOTHING, Checkpoint, Metadata, fit


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ([], ""),
        ([None], ""),
        ([5], "5"),
        ([{"logOffset": 5}], "logOffset=5"),
        ([{"orders": {"0": 5, "1": 7}, "clicks": {"0": 1}}], "orders=12 clicks=1"),
        ([{"orders": {"0": 5}}, 9], "orders=5 9"),
        ([{"reservoirId": "a-b", "reservoirVersion": 3, "isStartingVersion": True}], "reservoirVersion=3"),
        (["a text"], "a text"),
        ([[1, 2]], "[1, 2]"),
    ],
)
def test_how_far_the_sources_were_read(offsets: list[Any], said: str) -> None:
    assert summary(offsets) == said


def test_offsets_of_a_thousand_partitions_become_one_number() -> None:
    assert summary([{"orders": {str(partition): partition for partition in range(1000)}}]) == "orders=499500"


def test_a_query_without_state_has_none() -> None:
    known = read('{"batchId": 3, "batchDuration": 12, "numInputRows": 0, "stateOperators": [], "sources": []}').metadata
    assert known == Metadata(duration_ms=12, rows=0)


def test_missing_fields_are_unknown() -> None:
    assert read('{"batchId": 3}').metadata == NOTHING


@pytest.mark.parametrize("number", [-1, 2**63])
def test_numbers_that_fit_into_no_name_are_unknown(number: int) -> None:
    text = json.dumps({"batchId": 3, "numInputRows": number, "stateOperators": [{"memoryUsedBytes": number}]})
    known = read(text).metadata
    assert (known.rows, known.state_rows, known.state_bytes) == (None, 0, None)
    assert fit(Checkpoint("clicks", 3, 1, known)).metadata == known


@pytest.mark.parametrize(
    ("said", "milliseconds"),
    [
        ('"batchDuration": 12, "durationMs": {"triggerExecution": 99}', 12),
        ('"durationMs": {"addBatch": 3, "triggerExecution": 9}', 9),  # Spark 3.5
        ('"durationMs": {"addBatch": 3}', None),
        ('"durationMs": {"triggerExecution": "9"}', None),
    ],
)
def test_the_duration_of_a_batch(said: str, milliseconds: int | None) -> None:
    assert read(f'{{"batchId": 3, {said}}}').metadata.duration_ms == milliseconds
