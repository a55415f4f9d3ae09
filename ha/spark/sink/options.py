"""The options of the format ``ha``: what a program may say with ``option(name, value)``. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ha.outputs import layout
from ha.outputs.partition_commit import PartitionCommit
from ha.spark.sink.commit_options import OPTIONS, checkpoint_of, commit_of
from leader.errors import InvalidSettings
from leader.layout.names import check_word

COMPRESSIONS = {
    "parquet": ("snappy", "zstd", "gzip", "lz4", "none"),
    "orc": ("snappy", "zstd", "zlib", "lz4", "none"),
    "text": ("none",),
}
"""By file format, how files may be compressed; the first is the default."""

_KNOWN = {
    "path": "path",
    "format": "format",
    "partitionby": "partitionBy",
    "name": "name",
    "compression": "compression",
    **{name: name for name in OPTIONS},
}
"""Spark's names in lower case, and as people write them."""

_SPARKS = {"checkpointlocation", "queryname"}
"""What Spark hands on of its own."""


@dataclass(frozen=True)
class SinkOptions:
    """The options of one query.

    Attributes:
        path: URI of the directory in which batches appear.
        format: of the files.
        partition_by: columns.
        name: of the output.
        compression: of the files.
        commit: when partitions are committed; None for never.
        checkpoint: path of the query's checkpoint in the leader directory; empty without ``commit``.
    """

    path: str
    format: str
    partition_by: tuple[str, ...]
    name: str
    compression: str
    commit: PartitionCommit | None = None
    checkpoint: str = ""


def options_of(given: Mapping[str, str], leader: str) -> SinkOptions:
    """Return the options that were given.

    Args:
        given: names in any case, and values.
        leader: URI of the leader directory. A path without a host is on the same file system.

    Raises:
        InvalidName: the output cannot have that name.
        InvalidSettings: an option is missing, unknown or wrong.
    """
    lower = {name.lower(): value for name, value in given.items()}
    for name in lower:
        if name not in _KNOWN and name not in _SPARKS:
            raise InvalidSettings(f"The format ha has no option {name!r}: it has {', '.join(_KNOWN.values())}.")
    if not (path := lower.get("path", "").strip()):
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
    checkpoint = checkpoint_of(lower, leader) if commit else ""
    return SinkOptions(_located(path, leader), kind, columns, name, compression, commit, checkpoint)


def _located(path: str, leader: str) -> str:
    ours, theirs = urlsplit(leader), urlsplit(path)
    if theirs.scheme in {"", ours.scheme} and not theirs.netloc:
        if not theirs.path.startswith("/"):
            raise InvalidSettings(f"The path {path!r} is relative: give the format ha an absolute one, or a URI.")
        return f"{ours.scheme}://{ours.netloc}{theirs.path.rstrip('/')}"
    return path.rstrip("/")


def _listed(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
