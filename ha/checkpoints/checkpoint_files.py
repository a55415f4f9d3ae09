"""CheckpointFiles: the files of a Spark checkpoint, sorted by what they are. Pure.

    metadata                                         id of the query
    offsets/N, commits/N                             batch N begins, and ends
    sources/S/N, sources/S/N.compact                 files that a file source has seen; other sources keep one file
    state/OPERATOR/PARTITION[/STORE]/V.delta         changes that lead to version V, which batch V - 1 writes
    state/OPERATOR/PARTITION[/STORE]/V.snapshot      the whole of version V, of HDFSBackedStateStore
    state/OPERATOR/PARTITION[/STORE]/V[_ID].changelog, V[_ID].zip, SSTs/*.sst     the same, of RocksDB
    state/OPERATOR/_metadata/metadata                stores of an operator, or _metadata/v2/B, valid from batch B on
    state/OPERATOR/PARTITION/[STORE/]_metadata/schema
    state/OPERATOR/_stateSchema/...                  in its place, of an operator with variables: transformWithState

Names with an ID are of format 2: they never change their content. The numbers are Spark's, and have 64 bits.
"""

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

_NUMBER = r"[0-9]{1,19}"
_LOG = re.compile(rf"(offsets|commits)/({_NUMBER})")
_SOURCE = re.compile(rf"sources/([^/]+)/({_NUMBER})(\.compact)?")
_SOURCE_FOLDER = re.compile(r"sources/([^/]+)")
_PLACE = re.compile(rf"state/({_NUMBER})/({_NUMBER})(?:/([^/]+))?")
_VERSION = re.compile(rf"({_NUMBER})(?:_([0-9A-Za-z-]+))?\.(delta|snapshot|changelog|zip)")
_OPERATOR = re.compile(rf"state/({_NUMBER})/_metadata/(?:metadata|v2/({_NUMBER}))")
_SCHEMA = re.compile(rf"state/({_NUMBER})/{_NUMBER}/(?:[^/]+/)?_metadata")

_VARIABLES = re.compile(rf"state/({_NUMBER})/_stateSchema/.+")

DEFAULT_STORE = "default"  # name of a store that has no directory of its own in its partition


class Store(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """One state store in one partition."""

    operator: int
    partition: int
    name: str = DEFAULT_STORE

    @property
    def path(self) -> str:
        """Path of its directory."""
        below = "" if self.name == DEFAULT_STORE else f"/{self.name}"
        return f"state/{self.operator}/{self.partition}{below}"


class Version(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """One version of a store; the id is empty in format 1."""

    number: int
    id: str = ""

    def __str__(self) -> str:
        return f"{self.number}_{self.id}" if self.id else str(self.number)


class StoreFiles(msgspec.Struct, frozen=True):
    """The files of one store: the path of each version's changes, and of each version that is kept whole."""

    changes: dict[Version, str]
    whole: dict[Version, str]


class SourceLog(msgspec.Struct, frozen=True):
    """The log of one source: the path of each entry, and of each that contains all entries before it as well."""

    entries: dict[int, str]
    compacted: dict[int, str]

    @property
    def paths(self) -> list[str]:
        """All its files."""
        return [*self.entries.values(), *self.compacted.values()]


class CheckpointFiles:
    """The names of one checkpoint, looked at once: a large one has a hundred thousand."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        faults: Mapping[str, Exception] | None = None,
        skipped: Collection[str] = (),
        folders: Collection[str] = (),
    ) -> None:
        # Size of each file in bytes, by its path in the checkpoint.
        self.sizes = {path: size for path, size in sizes.items() if path not in skipped} if skipped else sizes
        # What is wrong with files whose contents were read, by path; it is raised when one is needed.
        self.faults = faults or {}
        self.skipped = skipped  # whole versions that are damaged: they are no longer among these files
        self.folders = folders  # directories; of a source, one that is empty says that its log was lost
        self.batches: list[int] = []  # the batches whose commits are retained, in order
        self.begun = -1  # the newest batch whose offsets are there; -1 if there is none
        self.sources: dict[str, SourceLog] = {}  # the log of each source, by the name of its directory
        self.stores: dict[Store, StoreFiles] = {}  # every store that has a file
        self.described: dict[int, list[str]] = {}  # the schema files of each operator that has some
        self.checksums = False  # whether there are files with check sums of others: Spark 4.1 and newer
        self._metadata: dict[int, dict[int, str]] = {}  # by operator, the file that is valid from each batch on
        self._with_variables: set[int] = set()
        self._rocksdb = False
        self._places: dict[str, StoreFiles | None] = {}
        for folder in folders:
            if named := _SOURCE_FOLDER.fullmatch(folder):
                self.sources[named[1]] = SourceLog({}, {})
        for path in self.sizes:
            self._sort(path)
        self.batches.sort()
        self.operators = {each.operator for each in self.stores}  # those that have a store

    def without(self, wholes: Collection[str]) -> "CheckpointFiles":
        """Return the same without these whole versions."""
        return CheckpointFiles(self.sizes, self.faults, [*self.skipped, *wholes], self.folders)

    def __contains__(self, path: str) -> bool:
        return path in self.sizes

    @staticmethod
    def state_file(path: str) -> tuple[Store, Version] | None:
        """Return the store and the version that a path is of; None if it is something else."""
        folder, _, name = path.rpartition("/")
        place, named = _PLACE.fullmatch(folder), _VERSION.fullmatch(name)
        return (_store(place), Version(int(named[1]), named[2] or "")) if place and named else None

    @property
    def kind_of_changes(self) -> str:
        """How the name of a store's changes ends here."""
        return "changelog" if self._rocksdb else "delta"

    def store(self, store: Store) -> StoreFiles:
        """Return the files of a store, which may have none."""
        return self.stores.get(store) or StoreFiles({}, {})

    def source(self, name: str) -> SourceLog:
        """Return the log of a source, which may have none."""
        return self.sources.get(name) or SourceLog({}, {})

    def operator_metadata(self, batch: int) -> dict[int, str]:
        """Return the file that says which stores an operator has at that batch, by operator."""
        found: dict[int, str] = {}
        for operator, since in self._metadata.items():
            if valid := [each for each in since if each <= batch]:
                found[operator] = since[max(valid)]
        return found

    def schemas(self, operators: Iterable[int]) -> list[str]:
        """Return the schema files of these operators' stores."""
        return [path for each in operators for path in self.described.get(each, ())]

    def without_metadata(self, batch: int) -> list[int]:
        """Return the operators with variables that have no metadata at that batch: Spark finds schemas by these."""
        return sorted(self._with_variables - self.operator_metadata(batch).keys())

    def has_variables(self, operator: int) -> bool:
        """Whether an operator has variables, whose schemas its metadata name."""
        return operator in self._with_variables

    def _sort(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        if name.endswith(".crc") and not name.startswith("."):
            self.checksums = True
        elif named := _LOG.fullmatch(path):
            if named[1] == "commits":
                self.batches.append(int(named[2]))
            else:
                self.begun = max(self.begun, int(named[2]))
        elif path.startswith("state/"):
            self._sort_state(path, folder, name)
        elif named := _SOURCE.fullmatch(path):
            log = self.sources.setdefault(named[1], SourceLog({}, {}))
            (log.compacted if named[3] else log.entries)[int(named[2])] = path

    def _sort_state(self, path: str, folder: str, name: str) -> None:
        if named := _VERSION.fullmatch(name):
            if folder not in self._places:
                place = _PLACE.fullmatch(folder)
                self._places[folder] = self.stores.setdefault(_store(place), StoreFiles({}, {})) if place else None
            files = self._places[folder]
            if files is not None:
                whole = named[3] in ("snapshot", "zip")
                (files.whole if whole else files.changes)[Version(int(named[1]), named[2] or "")] = path
                self._rocksdb = self._rocksdb or named[3] in ("changelog", "zip")
        elif (place := _SCHEMA.fullmatch(folder)) and not name.startswith("."):  # a check sum of this host
            self.described.setdefault(int(place[1]), []).append(path)
        elif named := _VARIABLES.fullmatch(path):
            self._with_variables.add(int(named[1]))
        elif named := _OPERATOR.fullmatch(path):
            self._metadata.setdefault(int(named[1]), {})[int(named[2] or 0)] = path


def _store(place: re.Match[str]) -> Store:
    return Store(int(place[1]), int(place[2]), place[3] or DEFAULT_STORE)
