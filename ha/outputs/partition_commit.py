"""PartitionCommit: when a partition is finished, how an output says so, and to whom. Pure.

The names beside the fields are those of Flink's file sink.

Both triggers go by what Spark has written down for a batch before it began, in ``offsets/N`` of the checkpoint: its
watermark, and the time that ``current_timestamp()`` gives in it. A batch that is done again has the same.

A partition ends by the clock on the wall, as its rows were put into it: an hour that comes twice ends with its second
time, and a day after midnight is the next midnight, on a day of 23 or 25 hours as well.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ha.config.setting import seconds_of
from leader.errors import InvalidSettings

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
        # It became pending with a batch at `since_ms`. ValueError: the partition's values are no time.
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


SUCCESS_FILE, METASTORE = "success-file", "metastore"

IN_UTC = frozenset({"UTC", "Etc/UTC", "Z", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "+00:00", "UTC+0"})
"""Zones of sessions that are UTC, as Java names them."""

_MARKER = re.compile(r"[_.][A-Za-z0-9._-]{0,99}")  # names that readers ignore


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A partition that is finished, as a policy gets it.

    Attributes:
        path: relative to the output, such as ``day=1/hour=2``.
        uri: of its directory.
        values: of its columns, as texts.
        batches: those that are in it.
    """

    path: str
    uri: str
    values: Mapping[str, str]
    batches: Sequence[int]


Policy = Callable[[CommittedPartition], object]


@dataclass(frozen=True)
class PartitionCommit:
    """Defines when a partition of an :class:`ha.spark.Output` is committed, and what happens then.

    Attributes:
        trigger: ``process-time``, by the time since the partition's first rows, or ``partition-time``, by the query's
            watermark (``sink.partition-commit.trigger``).
        delay: seconds, or a text such as ``1 d``, after its first rows, or after the time at which it begins
            (``sink.partition-commit.delay``). After that time they are counted on a clock on the wall: ``1 d`` is the
            same time of the next day, also if clocks change between.
        policy: what is done, in this order: ``success-file`` makes an empty file in it, ``metastore`` adds it to a
            table, and a function of your own is called with a :class:`CommittedPartition`, possibly more than once
            (``sink.partition-commit.policy.kind`` and ``.class``).
        success_file: name of the file; it begins with ``_`` or a dot (``sink.partition-commit.success-file.name``).
        table: of the session's catalog, for ``metastore``.
        time: when a partition begins, for ``partition-time``: a pattern such as ``{day} {hour}:00`` that gives an ISO
            date with or without a time, or a function of its values; default: all values with blanks between
            (``partition.time-extractor.timestamp-pattern`` and ``.class``).
        time_zone: of such times (``sink.partition-commit.watermark-time-zone``): the session's, if its functions have
            made the partitions' values. Without it they are in UTC, and only a session in UTC is taken.
    """

    trigger: str = PROCESS_TIME
    delay: float | str = 0.0
    policy: Sequence[str | Policy] = (SUCCESS_FILE,)
    success_file: str = "_SUCCESS"
    table: str = ""
    time: str | Callable[[Mapping[str, str]], datetime] = ""
    time_zone: str = ""
    decides: Trigger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check all of it."""
        if self.trigger not in TRIGGERS:
            raise InvalidSettings(
                f"A partition commit has no trigger {self.trigger!r}: choose {' or '.join(TRIGGERS)}."
            )
        try:
            known = seconds_of(self.delay) if isinstance(self.delay, str) else None
            delay = timedelta(seconds=float(self.delay) if known is None else known)
        except (OverflowError, ValueError):
            delay = timedelta(-1)
        if delay < timedelta():
            raise InvalidSettings(
                f"The delay of a partition commit is {self.delay!r}: give 0 or more seconds, or a duration such as 1 h."
            )
        if not self.policy or isinstance(self.policy, str):
            raise InvalidSettings("A partition commit needs a list of policies, such as policy=['success-file'].")
        for each in self.policy:
            if not callable(each) and each not in (SUCCESS_FILE, METASTORE):
                raise InvalidSettings(
                    f"A partition commit has no policy {each!r}: choose {SUCCESS_FILE}, {METASTORE}, or a function."
                )
        if METASTORE in self.policy and not self.table:
            raise InvalidSettings("The policy metastore needs to know the table: give table='database.table'.")
        if not _MARKER.fullmatch(self.success_file) or self.success_file.startswith(".staging"):
            raise InvalidSettings(
                f"Readers would take a file {self.success_file!r} for rows: choose a name of letters and digits after "
                "'_' or '.'."
            )
        try:
            zone = ZoneInfo(self.time_zone or "UTC")
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise InvalidSettings(f"There is no time zone {self.time_zone!r} on this host.") from error
        begins = Pattern(self.time) if isinstance(self.time, str) else self.time
        object.__setattr__(self, "delay", delay.total_seconds())
        object.__setattr__(self, "decides", Trigger(self.trigger, delay, begins, zone))

    def check_zone(self, session: str) -> None:
        """Refuse times of no stated zone, if the session has another one than UTC: a marker could come hours early.

        Args:
            session: its zone, as ``spark.sql.session.timeZone``; empty if nobody knows.

        Raises:
            InvalidSettings: the zone has to be stated.
        """
        if self.time_zone or self.trigger != PARTITION_TIME or session in IN_UTC:
            return
        where = f"the session is in {session}" if session else "nobody knows here in which zone the session is"
        raise InvalidSettings(
            f"A partition commit by partition-time reckons in UTC, and {where}: state it as time_zone "
            "(sink.partition-commit.watermark-time-zone), which is the session's if its functions have made the "
            "partitions' values, or UTC if those are in UTC."
        )

    @property
    def marker(self) -> str:
        """The name of the markers; empty if there are none."""
        return self.success_file if SUCCESS_FILE in self.policy else ""
