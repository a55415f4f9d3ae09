"""When a partition is due: at the boundary, not before; and what is wrong with settings is said in a sentence."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ha.outputs.commit_trigger import PARTITION_TIME, PROCESS_TIME, Moment, Pattern, values_of
from ha.outputs.partition_commit import PartitionCommit
from leader.errors import InvalidSettings

NOON_MS = 1_763_899_200_000
"""2025-11-23 12:00 UTC."""

HOUR_MS = 3_600_000


def due(commit: PartitionCommit, partition: str, *, watermark_ms: int = 0, time_ms: int = 0) -> bool:
    return commit.decides.due(partition, NOON_MS, Moment(watermark_ms, time_ms))


def test_by_the_time_since_its_first_rows() -> None:
    commit = PartitionCommit(trigger=PROCESS_TIME, delay=60.0)
    assert not due(commit, "day=1", time_ms=NOON_MS + 59_999)
    assert due(commit, "day=1", time_ms=NOON_MS + 60_000)
    assert not due(commit, "day=1", watermark_ms=NOON_MS * 2, time_ms=NOON_MS - 1)
    assert due(PartitionCommit(), "day=1", time_ms=NOON_MS)


@pytest.mark.parametrize(
    ("partition", "time"),
    [
        ("day=2025-11-23/hour=12", ""),
        ("day=2025-11-23/hour=12", "{day} {hour}:00"),
        ("day=20251123/hour=12", "{day}T{hour}"),
        ("at=2025-11-23 12%3A00", "{at}"),
        ("day=23/hour=12", lambda values: datetime(2025, 11, int(values["day"]), int(values["hour"]))),  # noqa: DTZ001
    ],
)
def test_by_the_watermark(partition: str, time: Any) -> None:
    commit = PartitionCommit(trigger=PARTITION_TIME, delay=3600.0, time=time)
    assert not due(commit, partition, watermark_ms=NOON_MS + HOUR_MS - 1, time_ms=NOON_MS * 2)
    assert due(commit, partition, watermark_ms=NOON_MS + HOUR_MS)


@pytest.mark.parametrize("time", ["", "{year}-{month}-{day} {hour}", "{year}-{month}-{day} {hour}:0"])
def test_numbers_of_one_digit_are_those_of_spark_s_functions(time: str) -> None:
    partition = "year=2025/month=3/day=1/hour=7" if time else "at=2025-3-1/hour=7"
    commit = PartitionCommit(trigger=PARTITION_TIME, time=time)
    assert commit.decides.begins_ms(partition) == datetime(2025, 3, 1, 7, tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize("text", ["2025-W09-6T07", "2025-03-01T07:00:00.0", "2025-03-01 07"])
def test_what_is_a_time_is_read_as_it_is(text: str) -> None:
    assert Pattern("{at}")({"at": text}) == datetime(2025, 3, 1, 7)  # noqa: DTZ001


def test_a_fraction_keeps_its_digits() -> None:
    assert Pattern("{at}")({"at": "2025-3-1 07:00:00.5"}).microsecond == 500_000


def test_in_a_time_zone() -> None:
    commit = PartitionCommit(trigger=PARTITION_TIME, time_zone="Europe/Berlin")
    assert not due(commit, "day=2025-11-23/hour=13", watermark_ms=NOON_MS - 1)
    assert due(commit, "day=2025-11-23/hour=13", watermark_ms=NOON_MS)


def test_a_query_without_a_watermark_commits_nothing_by_it() -> None:
    assert not due(PartitionCommit(trigger=PARTITION_TIME), "day=1969-01-01", watermark_ms=0)


@pytest.mark.parametrize("partition", ["day=__HIVE_DEFAULT_PARTITION__", "day=soon", "other=1"])
def test_values_that_are_no_time(partition: str) -> None:
    with pytest.raises(ValueError, match="Error: "):
        due(PartitionCommit(trigger=PARTITION_TIME, time="{day}"), partition, watermark_ms=NOON_MS)


def test_values_are_as_the_program_knows_them() -> None:
    assert values_of("day=a%2Fb%5E/other%3D=2=3") == {"day": "a/b^", "other=": "2=3"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"trigger": "sometimes"}, "choose process-time or partition-time"),
        ({"delay": -0.1}, "give 0 or more seconds"),
        ({"delay": float("nan")}, "give 0 or more seconds"),
        ({"policy": []}, "needs a list of policies"),
        ({"policy": "success-file"}, "needs a list of policies"),
        ({"policy": ["mail"]}, "no policy 'mail': choose success-file, metastore, or a function"),
        ({"policy": ["metastore"]}, "give table="),
        ({"success_file": "done"}, "would take a file 'done' for rows"),
        ({"success_file": "_a/b"}, "would take a file"),
        ({"success_file": ".staging-1"}, "would take a file"),
        ({"time_zone": "Mars/North"}, "no time zone 'Mars/North'"),
    ],
)
def test_settings_that_are_wrong(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidSettings, match=sentence):
        PartitionCommit(**wrong)


def test_the_marker_is_that_of_the_policy() -> None:
    assert PartitionCommit(success_file="_DONE").marker == "_DONE"
    assert PartitionCommit(policy=[print]).marker == ""
