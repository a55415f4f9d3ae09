"""CheckpointFiles: the files of a Spark checkpoint, sorted by what they are. Pure.

    metadata                                         id of the query
    offsets/N, commits/N                             batch N begins, and ends
    sources/S/N, sources/S/N.compact                 files that a file source has seen; other sources keep one file
    state/OPERATOR/PARTITION[/STORE]/V.delta         changes that lead to version V, which batch V - 1 writes
    state/OPERATOR/PARTITION[/STORE]/V.snapshot      the whole of version V, of HDFSBackedStateStore
    state/OPERATOR/PARTITION[/STORE]/V[_ID].changelog, V[_ID].zip, SSTs/*.sst     the same, of RocksDB
    state/OPERATOR/_metadata/metadata                stores of an operator, or _metadata/v2/B, valid from batch B on
    state/OPERATOR/PARTITION/[STORE/]_metadata/schema

Names with an ID are of format 2: they never change their content. The numbers are Spark's, and have 64 bits.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

import msgspec

_NUMBER = r"[0-9]{1,19}"
_LOG = re.compile(rf"(offsets|commits)/({_NUMBER})")
_SOURCE = re.compile(rf"sources/([^/]+)/({_NUMBER})(\.compact)?")
_STATE = re.compile(
    rf"state/({_NUMBER})/({_NUMBER})/(?:([^/]+)/)?({_NUMBER})(?:_([0-9A-Za-z-]+))?\.(delta|snapshot|changelog|zip)"
)
_OPERATOR = re.compile(rf"state/({_NUMBER})/_metadata/(?:metadata|v2/({_NUMBER}))")
_SCHEMA = re.compile(rf"state/({_NUMBER})/{_NUMBER}/(?:[^/]+/)?_metadata/[^/]+")

DEFAULT_STORE = "default"
"""Name of a store that has no directory of its own in its partition."""


class Store(msgspec.Struct, frozen=True, order=True):
    """One state store in one partition."""

    operator: int
    partition: int
    name: str = DEFAULT_STORE

    @property
    def path(self) -> str:
        """Path of its directory."""
        below = "" if self.name == DEFAULT_STORE else f"/{self.name}"
        return f"state/{self.operator}/{self.partition}{below}"


class Version(msgspec.Struct, frozen=True, order=True):
    """One version of a store; the id is empty in format 1."""

    number: int
    id: str = ""

    def __str__(self) -> str:
        return f"{self.number}_{self.id}" if self.id else str(self.number)


class StoreFiles(msgspec.Struct, frozen=True):
    """The files of one store: the path of each version's changes, and of each version that is kept whole."""

    changes: dict[Version, str]
    whole: dict[Version, str]


class CheckpointFiles:
    """The names of one checkpoint."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        """Sort nothing yet.

        Args:
            sizes: size of each file in bytes, by its path in the checkpoint.
        """
        self.sizes = sizes

    def __contains__(self, path: str) -> bool:
        return path in self.sizes

    @cached_property
    def batches(self) -> list[int]:
        """The batches whose commits are retained, in order."""
        return sorted(int(found[2]) for found in map(_LOG.fullmatch, self.sizes) if found and found[1] == "commits")

    @cached_property
    def sources(self) -> dict[str, "SourceLog"]:
        """The log of each source, by the name of its directory."""
        found: dict[str, SourceLog] = {}
        for path in self.sizes:
            if named := _SOURCE.fullmatch(path):
                log = found.setdefault(named[1], SourceLog({}, {}))
                (log.compacted if named[3] else log.entries)[int(named[2])] = path
        return found

    @staticmethod
    def state_file(path: str) -> tuple[Store, Version] | None:
        """Return the store and the version that a path is of; None if it is something else."""
        named = _STATE.fullmatch(path)
        if named is None:
            return None
        operator, partition, name, number, identity, _ = named.groups()
        return Store(int(operator), int(partition), name or DEFAULT_STORE), Version(int(number), identity or "")

    @cached_property
    def stores(self) -> dict[Store, StoreFiles]:
        """Every store that has a file."""
        found: dict[Store, StoreFiles] = {}
        for path in self.sizes:
            if named := self.state_file(path):
                store, version = named
                files = found.setdefault(store, StoreFiles({}, {}))
                (files.whole if path.endswith((".snapshot", ".zip")) else files.changes)[version] = path
        return found

    @cached_property
    def kind_of_changes(self) -> str:
        """How the name of a store's changes ends here."""
        return "changelog" if any(path.endswith((".changelog", ".zip")) for path in self.sizes) else "delta"

    def operator_metadata(self, batch: int) -> dict[int, str]:
        """Return the file that says which stores an operator has at that batch, by operator."""
        newest: dict[int, tuple[int, str]] = {}
        for path in self.sizes:
            if named := _OPERATOR.fullmatch(path):
                since = int(named[2] or 0)
                if since <= batch:
                    operator = int(named[1])
                    newest[operator] = max(newest.get(operator, (-1, "")), (since, path))
        return {operator: path for operator, (_, path) in newest.items()}

    def schemas(self, operators: Iterable[int]) -> list[str]:
        """Return the schema files of these operators' stores."""
        wanted = {str(each) for each in operators}
        return [path for path in self.sizes if (named := _SCHEMA.fullmatch(path)) and named[1] in wanted]

    def operators(self) -> set[int]:
        """Return the operators that have a store."""
        return {each.operator for each in self.stores}


class SourceLog(msgspec.Struct, frozen=True):
    """The log of one source: the path of each entry, and of each that contains all entries before it as well."""

    entries: dict[int, str]
    compacted: dict[int, str]

    @property
    def paths(self) -> list[str]:
        """All its files."""
        return [*self.entries.values(), *self.compacted.values()]
