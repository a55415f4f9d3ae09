"""Commit trigger: decides when a partition is complete, so that readers may be told. Pure.

Both triggers go by what Spark has written down for a batch before it began, in ``offsets/N`` of the checkpoint: its
watermark, and the time that ``current_timestamp()`` gives in it. A batch that is done again has the same.

A partition ends by the clock on the wall, as its rows were put into it: an hour that comes twice ends with its second
time, and a day after midnight is the next midnight, on a day of 23 or 25 hours as well.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote
from zoneinfo import ZoneInfo

PROCESS_TIME, PARTITION_TIME = "process-time", "partition-time"

TRIGGERS = (PROCESS_TIME, PARTITION_TIME)

_DIGIT = re.compile(r"(?<![0-9.,])(?=[0-9](?![0-9]))")
"""The place in front of a number of one digit, which is no fraction."""

TimeOf = Callable[[Mapping[str, str]], datetime]
"""Returns the time at which a partition begins, by the values of its columns."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When a batch was."""

    watermark_ms: int  # of the batch, in milliseconds since 1970; 0 if the query has none, or no row had come
    time_ms: int  # of the batch, by the clock of the driver that has planned it


@dataclass(frozen=True, slots=True)
class Trigger:
    """Decides whether a partition is due."""

    kind: str  # one of `TRIGGERS`
    delay: timedelta  # after its first rows, or, on the clock on the wall, after the time at which it begins
    begins: TimeOf  # the time at which a partition begins
    zone: ZoneInfo  # of times that have none

    def due(self, partition: str, since_ms: int, moment: Moment) -> bool:
        """Whether a partition is to be committed when the batch of that moment is complete."""
        # partition: its path, such as `day=1/hour=2`.
        # since_ms: time of the batch with which it became pending.
        # moment: of a batch that is complete.
        # ValueError: the partition's values are no time.
        if self.kind == PROCESS_TIME:
            return moment.time_ms - since_ms >= _ms(self.delay)
        # A row in time is later than the watermark. So none belongs to a partition that ends with it.
        return moment.watermark_ms > 0 and moment.watermark_ms >= self.ends_ms(partition)

    def ends_ms(self, partition: str) -> int:
        """Return from when on no time belongs to a partition; ``ValueError`` if its values are no time."""
        try:
            begins = self.begins(values_of(partition))
            if begins.tzinfo is None:
                begins = begins.replace(tzinfo=self.zone)
            return _passed_ms(begins + self.delay)
        except (AttributeError, KeyError, IndexError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


def _passed_ms(wall: datetime) -> int:
    """Return from when on a clock on the wall shows no time before this one; of a time that is skipped, some later."""
    first, second = (wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    before = (second - timedelta(milliseconds=1)).astimezone(wall.tzinfo)
    # Clocks go back to 02:00: after its first time 02:00 is passed. After the first 02:30 there is 02:15 once more.
    last = second if second > first and before.replace(tzinfo=None) < wall.replace(tzinfo=None) else first
    return _ms(last - datetime.fromtimestamp(0, UTC))


def _ms(duration: timedelta) -> int:
    return round(duration / timedelta(milliseconds=1))


@dataclass(frozen=True, slots=True)
class Pattern:
    """Reads times by a pattern such as ``{day} {hour}:00``; an empty one joins all values with blanks."""

    text: str

    def __call__(self, values: Mapping[str, str]) -> datetime:
        """Return the time at which a partition begins; its numbers may have one digit, as those of ``hour(at)``."""
        text = self.text.format_map(values) if self.text else " ".join(values.values())
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return datetime.fromisoformat(_DIGIT.sub("0", text))


def values_of(partition: str) -> dict[str, str]:
    """Return the values of a partition's columns, as texts."""
    pairs = (each.partition("=") for each in partition.split("/") if each)
    return {unquote(column): unquote(value) for column, _, value in pairs}
