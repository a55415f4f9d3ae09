"""Partition commit of the format ``ha``: Flink's options, and what cannot be had where a batch is committed.

Spark commits a batch in a Python process of its own, without a session. So that process finds the batch's watermark
where Spark has written it down, in the query's checkpoint; and it cannot reach a catalog.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ha.outputs.partition_commit import (
    METASTORE,
    PROCESS_TIME,
    SUCCESS_FILE,
    CommittedPartition,
    PartitionCommit,
    Policy,
)
from leader.errors import InvalidSettings

_COMMIT = "sink.partition-commit."

TRIGGER, DELAY, KIND = f"{_COMMIT}trigger", f"{_COMMIT}delay", f"{_COMMIT}policy.kind"
CLASS, MARKER = f"{_COMMIT}policy.class", f"{_COMMIT}success-file.name"
ZONE, PATTERN = f"{_COMMIT}watermark-time-zone", "partition.time-extractor.timestamp-pattern"

OPTIONS = (TRIGGER, DELAY, KIND, CLASS, MARKER, ZONE, PATTERN)
"""Flink's names, but a pattern is one of this package: ``{day} {hour}:00``. Each of them switches the commit on."""

CUSTOM = "custom"


@dataclass(frozen=True)
class Imported:
    """A policy of the program: a function such as ``catalog.partitions.tell``, imported where it is called."""

    name: str

    def __call__(self, partition: CommittedPartition) -> None:
        """Notify it of a partition."""
        self.found()(partition)

    def found(self) -> Any:
        """Import the function."""
        module, _, function = self.name.rpartition(".")
        try:
            found = getattr(import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidSettings(f"{CLASS} names {self.name!r}, and there is no such function: {error}") from error
        if not callable(found):
            raise InvalidSettings(f"{CLASS} names {self.name!r}, which cannot be called.")
        return found


def commit_of(given: Mapping[str, str]) -> PartitionCommit | None:
    """Return the partition commit that these options ask for, with names in lower case; None if they ask for none."""
    known = {name: given[name].strip() for name in OPTIONS if name in given}
    if not known:
        return None
    pattern = known.get(PATTERN, "")
    if "$" in pattern:
        raise InvalidSettings(f"{PATTERN} {pattern!r} has Flink's dollar signs: write {{day}} for $day.")
    commit = PartitionCommit(
        trigger=known.get(TRIGGER, PROCESS_TIME), delay=known.get(DELAY, 0.0), policy=_policies(known),
        success_file=known.get(MARKER, "_SUCCESS"), time=pattern, time_zone=known.get(ZONE, ""),
    )  # fmt: skip
    commit.check_zone("")  # Spark tells a data source nothing of its session
    return commit


def _policies(known: Mapping[str, str]) -> tuple[str | Policy, ...]:
    kinds = tuple(each.strip() for each in known.get(KIND, SUCCESS_FILE).split(",") if each.strip())
    if METASTORE in kinds:
        raise InvalidSettings(
            f"The format ha commits without a Spark session, so it cannot add partitions to a metastore: "
            f"use ha.spark.Output for that, or {KIND}={CUSTOM}."
        )
    if (CUSTOM in kinds) != bool(known.get(CLASS)):
        raise InvalidSettings(f"{KIND}={CUSTOM} and {CLASS}=module.function belong together: give both.")
    for each in kinds:
        if each not in (SUCCESS_FILE, CUSTOM):
            raise InvalidSettings(f"{KIND} has no {each!r}: choose {SUCCESS_FILE} or {CUSTOM}.")
    if CUSTOM in kinds:
        Imported(known[CLASS]).found()
    return tuple(Imported(known[CLASS]) if each == CUSTOM else each for each in kinds)
