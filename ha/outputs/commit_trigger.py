"""Commit trigger: when no more rows of a partition are expected, so that readers may be told. Pure.

Both triggers go by what Spark has written down for a batch before it began, in ``offsets/N`` of the checkpoint: its
watermark, and the time that ``current_timestamp()`` gives in it. A batch that is done again has the same.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
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
    """When a batch was.

    Attributes:
        watermark_ms: of the batch, in milliseconds since 1970; 0 if the query has none, or no row had come.
        time_ms: of the batch, by the clock of the driver that has planned it.
    """

    watermark_ms: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Trigger:
    """Says whether a partition is due.

    Attributes:
        kind: one of :data:`TRIGGERS`.
        delay_ms: after its first rows, or after the time at which it begins.
        begins: the time at which a partition begins.
        zone: of times that have none.
    """

    kind: str
    delay_ms: int
    begins: TimeOf
    zone: ZoneInfo

    def due(self, partition: str, since_ms: int, moment: Moment) -> bool:
        """Whether a partition is to be committed when the batch of that moment is complete.

        Args:
            partition: its path, such as ``day=1/hour=2``.
            since_ms: time of the batch with which it became pending.
            moment: of a batch that is complete.

        Raises:
            ValueError: the partition's values are no time.
        """
        if self.kind == PROCESS_TIME:
            return moment.time_ms - since_ms >= self.delay_ms
        # A row in time is later than the watermark. So none belongs to a partition that ends with it.
        return moment.watermark_ms > 0 and moment.watermark_ms >= self.begins_ms(partition) + self.delay_ms

    def begins_ms(self, partition: str) -> int:
        """Return when a partition begins.

        Raises:
            ValueError: the partition's values are no time.
        """
        try:
            begins = self.begins(values_of(partition))
            if begins.tzinfo is None:
                begins = begins.replace(tzinfo=self.zone)
            return round(begins.timestamp() * 1000)
        except (AttributeError, KeyError, IndexError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error


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
