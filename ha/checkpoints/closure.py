"""Closure: the exact set of files that a restart after a batch needs. Pure: it asks for contents, and is given them.

A restart after batch N reads ``metadata``, ``offsets/N`` and the one before, ``commits/N``, what each file source had
seen by then, and version N + 1 of every state store: its newest whole version on the way there, and all changes since.
Tried by copying exactly that into an empty directory, and starting there (tests/system/spark/test_closures.py).
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.contents import Offsets, OperatorStores, Unreadable
from ha.checkpoints.names import DEFAULT_STORE, CheckpointFiles, Store, StoreFiles, Version

T = TypeVar("T")

Wanted = frozenset[str]
"""Paths of small files whose contents are asked for."""

Contents = Mapping[str, bytes | None]
"""The contents of files; None if there is no such file any more. Of a changelog only the head."""

Parsed = dict[str, Any]
"""Small files, parsed, by path."""

Asking = Generator[Wanted, Contents, "Closure"]

SINGLE_PARTITION = frozenset({"globalLimit"})
"""Operators that have one partition, whatever the setting says; so has an aggregation without a key."""


class Closure(msgspec.Struct, frozen=True):
    """All that a restart after a batch needs.

    Attributes:
        batch: its number.
        files: size of each file, by path; all that were found, where one is missing.
        rebuilt: files that are missing and can be made, by path, with the file that they are made from.
        missing: path of the first file that is missing; empty if there is none.
        reason: why it does not do, in a sentence; empty if there is nothing to say.
        keys: number of keys of each store, in its newest whole version; only RocksDB counts them.
        replayed: number of changes that each store reads after its whole version.
    """

    batch: int
    files: dict[str, int]
    rebuilt: dict[str, str] = {}
    missing: str = ""
    reason: str = ""
    keys: dict[Store, int] = {}
    replayed: dict[Store, int] = {}

    @property
    def restorable(self) -> bool:
        """Whether a restart succeeds, perhaps after files were rebuilt."""
        return not self.missing

    @property
    def bytes(self) -> int:
        """Total size of its files."""
        return sum(self.files.values())


class Hole(Exception):
    """The first file that is missing, and why that is so."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path


def closure(files: CheckpointFiles, batch: int, parsed: Parsed | None = None, *, begun: bool = False) -> Asking:
    """Compute the closure of a batch; run it with :func:`ha.checkpoints.reading.closures`.

    Args:
        files: names of the checkpoint.
        batch: the batch.
        parsed: what small files say; shared by closures that are given the same contents.
        begun: whether the next batch was begun, and is to be done again with the same input.

    Yields:
        the paths of files whose contents it needs next.

    Returns:
        the closure, also of a batch that is not restorable.
    """
    asked = Closing(files, batch, {} if parsed is None else parsed, begun=begun)
    try:
        yield from asked.collect()
    except Hole as hole:
        return asked.result(hole.path, str(hole))
    return asked.result()


def own_logs(offsets: Mapping[str, Any], logs: Mapping[str, object]) -> dict[str, Any]:
    """Return the offset of each source, by the name of its log.

    A stream that a query reads twice, such as in a union with itself, has two offsets and one log: they are equal, and
    logs are numbered without the second one.

    Args:
        offsets: by their place among all, or by name.
        logs: by the names of their directories.
    """
    numbers = [int(each) for each in logs if each.isdecimal()]
    twice = len(offsets) - max(numbers, default=len(offsets) - 1) - 1 if all(map(str.isdecimal, offsets)) else 0
    found: dict[str, Any] = {}
    for number, offset in offsets.items():
        if twice > 0 and offset is not None and offset in found.values():
            twice -= 1
        else:
            found[str(len(found)) if number.isdecimal() else number] = offset
    return found


class Head(msgspec.Struct, frozen=True):
    """A batch as small files describe it: its offsets, the ids of its versions (format 2), and its operators."""

    offsets: Offsets
    ids: dict[int, list[list[str]]]
    operators: dict[int, OperatorStores]


class Closing:
    """One closure, as far as it has been collected."""

    def __init__(self, files: CheckpointFiles, batch: int, parsed: Parsed, *, begun: bool = False) -> None:
        self._names = files
        self._checksums = files.checksums
        self._batch = batch
        self._newest = batch + 1 if begun else batch
        """The newest batch whose input is known."""
        self._parsed = parsed
        self._files: dict[str, int] = {}
        self._rebuilt: dict[str, str] = {}
        self._keys: dict[Store, int] = {}
        self._replayed: dict[Store, int] = {}

    def result(self, missing: str = "", reason: str = "") -> Closure:
        """Return what has been collected until now."""
        return Closure(self._batch, self._files, self._rebuilt, missing, reason, self._keys, self._replayed)

    def collect(self) -> Generator[Wanted, Contents, None]:
        """Collect everything.

        Raises:
            Hole: a file is missing.
        """
        head = yield from self.collect_head()
        if head.ids:
            yield from self._collect_versions_by_id(self.targets(head))
        else:
            yield from self._collect_versions_by_number((yield from self.stores(head)))

    def collect_head(self) -> Generator[Wanted, Contents, Head]:
        """Collect everything but the versions of the stores.

        Raises:
            Hole: a file is missing.
        """
        batch = self._batch
        commit, last, newest = f"commits/{batch}", f"offsets/{batch}", f"offsets/{self._newest}"
        for path in ("metadata", last, commit, newest):
            self._need(path)
        if batch > 0:
            # Spark reads it and takes nothing from it: the batch after it is complete.
            self._need_or_rebuild(f"offsets/{batch - 1}", last)
        for operator in self._names.without_metadata(batch):
            raise Hole(
                f"state/{operator}/_metadata/v2/0",
                f"Neither it nor another one up to {batch} is there, and they name the schemas of its variables.",
            )
        operators = self._names.operator_metadata(batch)
        said = yield frozenset({commit, last, newest, *operators.values()})
        offsets = self._read(contents.offsets, said, last)
        ids = self._read(contents.state_ids, said, commit)
        known = {operator: self._read(contents.operator_stores, said, path) for operator, path in operators.items()}
        self._collect_sources(self._read(contents.offsets, said, newest))
        for operator, path in operators.items():
            self._need(path)
            for schema in known[operator].schemas:
                self._need(schema)
        for path in self._names.schemas(known or self._names.operators()):
            self._need(path)
        return Head(offsets, ids, known)

    def _need(self, path: str, size: int | None = None) -> None:
        found = self._names.sizes.get(path)
        if found is None:
            raise Hole(path, "It is missing.")
        if size is not None and found != size:
            raise Hole(path, f"It has {found:,} bytes, and had {size:,} when it was written.")
        self._files[path] = found
        if self._checksums and (checks := f"{path}.crc") in self._names:  # a restart does without
            self._files[checks] = self._names.sizes[checks]

    def _need_or_rebuild(self, path: str, origin: str) -> None:
        if path in self._names:
            self._need(path)
        else:
            self._rebuilt[path] = origin

    def _collect_sources(self, offsets: Offsets) -> None:
        for number, offset in own_logs(offsets.sources, self._names.sources).items():
            log = self._names.sources.get(number)
            newest = contents.log_offset(offset)
            if newest is None:
                for path in log.paths if log else ():  # where another source began, for instance
                    self._need(path)
                continue
            entries, compacted = (log.entries, log.compacted) if log else ({}, {})
            base = max((each for each in compacted if each <= newest), default=None)
            needed = range(0 if base is None else base + 1, newest + 1)
            if all(each in entries for each in needed):
                if base is not None:
                    self._need(compacted[base])
                for each in needed:
                    self._need(entries[each])
            elif later := [each for each in compacted if each > newest]:
                self._rebuilt[f"sources/{number}/{newest}.compact"] = compacted[min(later)]
            else:
                hole = next(each for each in needed if each not in entries)
                raise Hole(f"sources/{number}/{hole}", "It is missing, and no later log contains its entries.")

    # --- state, format 1: names carry the version only

    def stores(self, head: Head) -> Generator[Wanted, Contents, list[Store]]:
        """Return every store that there must be."""
        schemas = frozenset(f"state/{each}/0/_metadata/schema" for each in self._names.operators())
        said = yield frozenset(path for path in schemas if path in self._names)
        found = []
        for operator in sorted(self._names.operators() | set(head.operators)):
            partitions = self._partitions(operator, head, said)
            known = head.operators.get(operator)
            names = known.stores if known else sorted({e.name for e in self._names.stores if e.operator == operator})
            found += [Store(operator, partition, name) for partition in range(partitions) for name in names]
        return found

    def _collect_versions_by_number(self, stores: list[Store]) -> Generator[Wanted, Contents, None]:
        snapshots = {}
        target = self._batch + 1
        for store in stores:
            files = self._names.stores.get(store, StoreFiles({}, {}))
            # Those with an id are another format's; here they are met if the commit that tells the ids is damaged.
            base = max((each.number for each in files.whole if each.number <= target and not each.id), default=0)
            if base:
                snapshots[store] = files.whole[Version(base)]
            self._collect_changes(store, files, [Version(each) for each in range(base + 1, target + 1)])
        yield from self._collect_snapshots(snapshots)

    def _partitions(self, operator: int, head: Head, said: Contents) -> int:
        """Number of the operator's partitions. Its metadata are stale after a repartition; ``offsets`` are not."""
        there = {each.partition for each in self._names.stores if each.operator == operator}
        expected = head.offsets.partitions or max(there, default=0) + 1
        schema = said.get(f"state/{operator}/0/_metadata/schema") or b""
        keyless = b'"type":"struct","fields":[]' in schema[:80]
        if there <= {0} and (
            keyless or (operator in head.operators and head.operators[operator].name in SINGLE_PARTITION)
        ):
            return 1
        return expected

    # --- state, format 2: commits say the id of each version

    def targets(self, head: Head) -> dict[Store, Version]:
        """Return the version that the batch has written of each store.

        Raises:
            Hole: it is not known to which store an id belongs.
        """
        found: dict[Store, Version] = {}
        for operator, partitions in sorted(head.ids.items()):
            for partition, each in enumerate(partitions):
                names = self._names_of(operator, partition, each, head.operators)
                for name, identity in zip(names, each, strict=True):
                    found[Store(operator, partition, name)] = Version(self._batch + 1, identity)
        return found

    def _collect_versions_by_id(self, targets: Mapping[Store, Version]) -> Generator[Wanted, Contents, None]:
        stores = {store: self._names.stores.get(store, StoreFiles({}, {})) for store in targets}
        behind = {store: target for store, target in targets.items() if target not in stores[store].whole}
        for store, target in behind.items():
            self._collect_changes(store, stores[store], [target])
        said = yield frozenset(stores[store].changes[target] for store, target in behind.items())
        snapshots = {store: stores[store].whole[target] for store, target in targets.items() if store not in behind}
        for store, target in behind.items():
            before = self._read(contents.lineage, said, stores[store].changes[target])
            base = max((each for each in before if each in stores[store].whole), default=None)
            if base is not None:
                snapshots[store] = stores[store].whole[base]
            elif before and before[0].number > 1:
                raise Hole(f"{store.path}/{before[0]}.zip", "It is missing, and changes before it are not known.")
            needed = [each for each in before if base is None or each.number > base.number]
            self._collect_changes(store, stores[store], [*needed, target])
        yield from self._collect_snapshots(snapshots)

    def _names_of(
        self, operator: int, partition: int, ids: list[str], known: Mapping[int, OperatorStores]
    ) -> list[str]:
        """Return the names of a partition's stores, in the order of their ids."""
        if operator in known and len(known[operator].stores) == len(ids):
            return known[operator].stores
        if len(ids) == 1:
            return [DEFAULT_STORE]
        by_id = {
            version.id: store.name
            for store, files in self._names.stores.items()
            if (store.operator, store.partition) == (operator, partition)
            for version in (*files.changes, *files.whole)
        }
        if lost := next((each for each in ids if each not in by_id), ""):
            path = f"state/{operator}/{partition}/*/{self._batch + 1}_{lost}.changelog"
            raise Hole(path, "It is missing, and so are the operator's metadata.")
        return [by_id[each] for each in ids]

    # --- both

    def _collect_changes(self, store: Store, files: StoreFiles, versions: list[Version]) -> None:
        for version in versions:
            self._need(files.changes.get(version) or f"{store.path}/{version}.{self._names.kind_of_changes}")
        self._replayed[store] = len(versions)

    def _collect_snapshots(self, snapshots: Mapping[Store, str]) -> Generator[Wanted, Contents, None]:
        """Add whole versions, and the tables that those of RocksDB name."""
        said = yield frozenset(path for path in snapshots.values() if path.endswith(".zip"))
        for store, path in snapshots.items():
            self._need(path)
            self._replayed.setdefault(store, 0)
            if path.endswith(".zip"):
                found = self._read(contents.whole, said, path)
                self._keys[store] = found.keys
                for table, size in found.files.items():
                    self._need(f"{store.path}/{table}", size)

    def _read(self, reader: Callable[[bytes], T], said: Contents, path: str) -> T:
        if path not in self._parsed:
            data = said.get(path)
            if data is None:
                raise Hole(path, "It is missing.")
            try:
                self._parsed[path] = reader(data)
            except Unreadable as error:
                raise Hole(path, f"It is damaged. {error}") from error
        found: T = self._parsed[path]
        return found
