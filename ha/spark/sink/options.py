"""The options of the format ``ha``, which a program sets with ``option(name, value)``; some are Flink's.

Spark commits a batch in a Python process of its own, without a session. So a partition commit there finds the batch's
watermark where Spark has written it down, in the query's checkpoint; and it cannot reach a catalog.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ha.hook.query_rules import unguarded
from ha.outputs import layout
from ha.outputs.partition_commit import (
    METASTORE,
    PROCESS_TIME,
    SUCCESS_FILE,
    CommittedPartition,
    PartitionCommit,
    Policy,
)
from leader.errors import InvalidSettings
from leader.layout.names import SPARK, check_word
from store.errors import Invalid
from store.uris import split

_COMMIT = "sink.partition-commit."

TRIGGER, DELAY, KIND = f"{_COMMIT}trigger", f"{_COMMIT}delay", f"{_COMMIT}policy.kind"
CLASS, MARKER = f"{_COMMIT}policy.class", f"{_COMMIT}success-file.name"
ZONE, PATTERN = f"{_COMMIT}watermark-time-zone", "partition.time-extractor.timestamp-pattern"

OPTIONS = (TRIGGER, DELAY, KIND, CLASS, MARKER, ZONE, PATTERN)
"""Flink's names, but a pattern is one of this package: ``{day} {hour}:00``. Each of them switches the commit on."""

CUSTOM = "custom"

COMPRESSIONS = {
    "parquet": ("snappy", "zstd", "gzip", "lz4", "none"),
    "orc": ("snappy", "zstd", "zlib", "lz4", "none"),
    "text": ("none",),
}
"""By file format, how files may be compressed; the first is the default."""

_KNOWN = {name.lower(): name for name in ("path", "format", "partitionBy", "name", "compression", *OPTIONS)}
"""Spark's names in lower case, and as people write them."""

_SPARKS = {"checkpointlocation", "queryname"}  # what Spark hands on of its own


@dataclass(frozen=True)
class SinkOptions:
    """The options of one query."""

    path: str  # URI of the directory in which batches appear
    format: str  # of the files
    partition_by: tuple[str, ...]  # columns
    name: str  # of the output
    compression: str  # of the files
    checkpoint: str  # path of the query's checkpoint in the leader directory
    commit: PartitionCommit | None = None  # when partitions are committed; None for never


def options_of(given: Mapping[str, str], leader: str) -> SinkOptions:
    """Return the options that were given, with names in any case."""
    # A path without a host is on the file system of the leader directory, whose URI `leader` is.
    lower = {name.lower(): value for name, value in given.items()}
    for name in lower:
        if name not in _KNOWN and name not in _SPARKS:
            raise InvalidSettings(f"The format ha has no option {name!r}: it has {', '.join(_KNOWN.values())}.")
    if not (path := lower.get("path", "")):
        raise InvalidSettings("The format ha needs option('path', URI): the directory in which batches appear.")
    kind = lower.get("format", "parquet").strip().lower()
    if kind not in COMPRESSIONS:
        raise InvalidSettings(
            f"The format ha cannot write files of format {kind!r}: choose {_listed(tuple(COMPRESSIONS))}, "
            "or use ha.spark.Output, for which Spark writes the files."
        )
    compression = lower.get("compression", COMPRESSIONS[kind][0]).strip().lower().replace("uncompressed", "none")
    if compression not in COMPRESSIONS[kind]:
        raise InvalidSettings(
            f"The format ha cannot compress {kind} with {compression!r}: choose {_listed(COMPRESSIONS[kind])}."
        )
    columns = tuple(each.strip() for each in lower.get("partitionby", "").split(",") if each.strip())
    if len(set(columns)) < len(columns):
        raise InvalidSettings(f"partitionBy {lower['partitionby']!r} names a column twice.")
    layout.check_columns(columns, layout.BATCH)
    name, commit = check_word(lower.get("name", "output"), "an output"), commit_of(lower)
    if commit is not None and not columns:
        raise InvalidSettings(f"Output {name!r} has no partitions to commit: give partitionBy, too.")
    return SinkOptions(_located(path, leader), kind, columns, name, compression, _checkpoint(lower, leader), commit)


def _checkpoint(lower: Mapping[str, str], leader: str) -> str:
    query, place = lower.get("queryname", ""), lower.get("checkpointlocation", "")
    if why := unguarded(query, place, f"{leader}/{SPARK}"):
        raise InvalidSettings(f"The format ha begins no batch of the query {query!r}: {why}")
    return f"{SPARK}/{place.rstrip('/').rpartition('/')[2] or query}"


def _located(path: str, leader: str) -> str:
    try:
        ours, theirs = split(leader), split(path)
    except Invalid as error:
        raise InvalidSettings(f"path: {error}") from error
    if theirs.scheme in {"", ours.scheme} and not theirs.netloc:
        if not theirs.path.startswith("/"):
            raise InvalidSettings(f"The path {path!r} is relative: give the format ha an absolute one, or a URI.")
        return f"{ours.scheme}://{ours.netloc}{theirs.path.rstrip('/')}"
    return path.rstrip("/")


def _listed(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


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
