"""When a partition is due: at the boundary, not before; and what is wrong with settings is said in a sentence."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ha.outputs.batch import Batch
from ha.outputs.lines import Line
from ha.outputs.partition_commit import (
    PARTITION_TIME,
    PROCESS_TIME,
    CommittedPartition,
    Moment,
    PartitionCommit,
    Pattern,
    values_of,
)
from ha.outputs.partitions import Partitions
from leader.errors import InvalidSettings
from tests.unit.ha.outputs.place import Place

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
    assert commit.decides.ends_ms(partition) == datetime(2025, 3, 1, 7, tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize("text", ["2025-W09-6T07", "2025-03-01T07:00:00.0", "2025-03-01 07"])
def test_what_is_a_time_is_read_as_it_is(text: str) -> None:
    assert Pattern("{at}")({"at": text}) == datetime(2025, 3, 1, 7)  # noqa: DTZ001


def test_a_fraction_keeps_its_digits() -> None:
    assert Pattern("{at}")({"at": "2025-3-1 07:00:00.5"}).microsecond == 500_000


def test_in_a_time_zone() -> None:
    commit = PartitionCommit(trigger=PARTITION_TIME, time_zone="Europe/Berlin")
    assert not due(commit, "day=2025-11-23/hour=13", watermark_ms=NOON_MS - 1)
    assert due(commit, "day=2025-11-23/hour=13", watermark_ms=NOON_MS)


STEP = timedelta(minutes=15)


@pytest.mark.parametrize(
    ("zone", "year"),
    [
        ("Europe/Berlin", 2026),
        ("America/New_York", 2026),
        ("Australia/Lord_Howe", 2026),  # half an hour
        ("America/Sao_Paulo", 2018),  # at midnight: 23:00 came twice, and 00:00 was skipped
        ("America/Havana", 2026),  # back from 01:00 to midnight
        ("Asia/Kathmandu", 2026),  # 05:45 all year
        ("Pacific/Apia", 2011),  # has skipped a day
    ],
)
def test_no_marker_stands_while_rows_in_time_may_come(zone: str, year: int) -> None:
    """Of each hour and each day of a year, however often clocks show it: no sooner than its last row, and no later."""
    known, last = ZoneInfo(zone), dict[str, datetime]()
    at, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    while at < end:
        row = at.astimezone(known)
        for partition in (f"day={row:%Y-%m-%d}", f"day={row:%Y-%m-%d}/hour={row.hour}"):
            last[partition] = at
        at += STEP
    hours = PartitionCommit(trigger=PARTITION_TIME, delay=3600, time="{day} {hour}:00", time_zone=zone).decides
    days = PartitionCommit(trigger=PARTITION_TIME, delay="1 d", time_zone=zone).decides
    complete = {each: at for each, at in last.items() if at < end - timedelta(days=2)}
    assert len(complete) > 8_000
    for partition, at in complete.items():
        ends = (hours if "hour" in partition else days).ends_ms(partition)
        assert ends == round((at + STEP).timestamp() * 1000), partition


def test_an_hour_that_does_not_exist_is_no_error() -> None:
    """It was skipped at 01:00Z: whatever claims to be in it is committed when the hour before is, or soon after."""
    commit = PartitionCommit(trigger=PARTITION_TIME, delay=3600, time="{day} {hour}:00", time_zone="Europe/Berlin")
    skipped = datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp() * 1000
    assert commit.decides.ends_ms("day=2026-03-29/hour=2") == skipped
    assert commit.decides.ends_ms("day=2026-03-29/hour=1") == skipped


def test_a_time_with_its_offset_is_no_other() -> None:
    commit = PartitionCommit(trigger=PARTITION_TIME, delay=3600, time="{at}", time_zone="Europe/Berlin")
    first, second = ("at=2026-10-25T02%3A00:00+02:00", "at=2026-10-25T02%3A00:00+01:00")
    assert commit.decides.ends_ms(second) - commit.decides.ends_ms(first) == HOUR_MS


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
        ({"delay": "soon"}, "delay of a partition commit is 'soon': give 0 or more seconds, or a duration such as 1 h"),
        ({"delay": 1e300}, "give 0 or more seconds"),
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


@pytest.mark.parametrize("session", ["UTC", "Etc/UTC", "Z"])
def test_a_session_in_utc_needs_no_word_of_it(session: str) -> None:
    PartitionCommit(trigger=PARTITION_TIME).check_zone(session)


@pytest.mark.parametrize("session", ["America/New_York", "Europe/Berlin", "GMT+1", ""])
def test_no_marker_comes_in_another_zone_than_the_session_s_unless_that_is_said(session: str) -> None:
    with pytest.raises(InvalidSettings, match=re.escape(session) or "nobody knows"):
        PartitionCommit(trigger=PARTITION_TIME).check_zone(session)
    PartitionCommit(trigger=PARTITION_TIME, time_zone="UTC").check_zone(session)
    PartitionCommit(trigger=PROCESS_TIME).check_zone(session)


WORDS, DAYS = Line("0a", "words"), ("day=1", "day=11")
LATER = PartitionCommit(delay=3600.0)


def fail(_: CommittedPartition) -> None:
    raise RuntimeError("The receiver is away.")


def marked(place: Place) -> list[str]:
    return sorted(each.parent.name for each in (place.root / "out").rglob("_SUCCESS"))


def write(place: Place, number: int, commit: PartitionCommit, *days: str) -> None:
    place.publish(place.journal(commit=commit), Batch(number, WORDS, f"{number}", Moment(0, number)), days=days)


def test_a_marker_of_a_commit_that_failed_goes_before_the_next_rows(place: Place) -> None:
    with pytest.raises(RuntimeError):
        write(place, 5, PartitionCommit(policy=["success-file", fail]), *DAYS)
    assert marked(place) == ["day=1"]
    write(place, 6, LATER, "day=11")
    assert marked(place) == ["day=1"], "another partition, whose name begins like it"
    write(place, 7, LATER, "day=1")
    assert marked(place) == []
    assert place.journal(commit=LATER).commit_pending() == 2
    assert marked(place) == ["day=1", "day=11"]
    assert place.journal(commit=LATER).commit_pending() == 0


def test_a_crash_before_a_marker_was_taken_away_is_gone_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write(place, 5, PartitionCommit(), *DAYS)
    assert marked(place) == ["day=1", "day=11"]
    with monkeypatch.context() as patch:
        patch.setattr(Partitions, "_withdraw", lambda *_: fail(None))  # type: ignore[arg-type]
        with pytest.raises(RuntimeError):
            write(place, 6, LATER, "day=1")
    assert place.found.keys() == {f"{day}/batch=5/part-0" for day in DAYS}, "no row of it was moved"
    place.journal(commit=LATER).settle()
    assert (marked(place), "day=1/batch=6/part-0" in place.found) == (["day=11"], True)
