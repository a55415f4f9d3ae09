"""Inspection: reads a query's batches, state, sources and frozen settings from its checkpoint, without a JVM.

All batches are judged by names, and of the newest one that can be continued small files are read: the zips of RocksDB
know keys and tables. Tables themselves are never read.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import DEFAULT_STORE, CheckpointFiles, Store, Version
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure, Contents, Hole, Parsed, Wanted
from ha.checkpoints.contents import Json, OperatorStores
from ha.checkpoints.schemas import StateSchema, state_schemas
from ha.checkpoints.state_versions import ClosingWithState
from ha.checkpoints.verify import Condition, Verified, conditions

T = TypeVar("T")

# By store and version, the path of the first file that is missing; empty if there is none.
Holes = dict[Store, dict[Version, str]]


class BatchRange(msgspec.Struct, frozen=True):
    """Batches in a row with the same condition, by names; and the first file that is missing."""

    first: int
    last: int
    condition: Condition
    missing: str = ""
    reason: str = ""


class Skew(msgspec.Struct, frozen=True):
    """How much more than the mean the largest partition has, and which one that is."""

    ratio: float
    partition: int


class StoreState(msgspec.Struct, frozen=True):
    """One store of an operator, over all its partitions."""

    name: str  # of the store
    partitions: int  # number of them
    keys: int | None  # in the newest whole versions; null if they are not counted, as in HDFSBackedStateStore
    keys_from: int | None  # the oldest batch that these numbers of keys are of; null without them
    keys_to: int | None  # the newest batch that they are of
    bytes: int  # of the files that a restart reads
    replayed: int  # versions that the partition with the most of them reads after its whole version
    key_skew: Skew | None  # of the keys; null without them
    byte_skew: Skew | None  # of the bytes
    states: list[StateSchema]  # schemas of its states; transformWithState has one for each variable


class OperatorState(msgspec.Struct, frozen=True):
    """One stateful operator: its number in the plan, its name in Spark, and what else its metadata say."""

    id: int
    name: str
    stores: list[StoreState]
    properties: Json


class Inspection(msgspec.Struct, frozen=True):
    """A checkpoint, as its files describe it."""

    id: str  # of the query, as Spark gives it; empty if that cannot be read
    batches: list[BatchRange]  # what can be done with each that is retained, by names; the oldest first
    batch: int | None  # the one that all further values are of: the newest that can be continued, else the newest
    format: str  # of its state: `RocksDB`, `RocksDB with ids` (format 2) or `HDFSBackedStateStore`; empty if none
    partitions: int  # number of state partitions, which is frozen
    watermark_ms: int  # of the batch that would follow, in milliseconds since 1970; 0 if there is none
    sources: dict[str, Any]  # offset of each source, by its number or name
    settings: dict[str, str]  # of Spark that are frozen
    operators: list[OperatorState]  # those with state
    files: int  # number of files that a restart after the batch needs
    bytes: int  # their size
    reads: int  # number of files that were read to say all this
    bytes_read: int  # their size


def inspect(reader: CheckpointReader, batch: int | None = None) -> Inspection:
    """Inspect a checkpoint: this batch, or the newest that can be continued. The query may be running."""
    names = reader.files()
    judged = conditions(names, reader.run(by_names(names, names.batches)))
    usable = [each.batch for each in judged if not each.missing]
    chosen = batch if batch is not None else max(usable or names.batches, default=None)
    look = _Look(reader, names, chosen)
    offsets = look.read(contents.offsets, f"offsets/{chosen}") or contents.Offsets({}, 0, {})
    found = reader.closures(names, [chosen])[0] if chosen is not None else Closure(-1, {})
    if found.missing or found.skipped:  # a table, which names do not tell
        (hole,) = conditions(names, [found])
        judged = [hole if each.batch == chosen and not each.missing else each for each in judged]
    operators = look.operators(found)
    query = look.read(_query_id, "metadata") or ""
    watermark = look.read(contents.next_watermark, f"commits/{chosen}") or 0
    return Inspection(
        query, _ranges(judged), chosen, _format(names), offsets.partitions, watermark, offsets.sources,
        offsets.settings, operators, len(found.files), found.bytes, reader.reads, reader.bytes,
    )  # fmt: skip


def _ranges(judged: Iterable[Verified]) -> list[BatchRange]:
    """Join batches in a row whose condition and hole are the same."""
    found = []
    numbered = ((each.batch - place, each) for place, each in enumerate(judged))
    for _, group in groupby(numbered, lambda pair: (pair[0], pair[1].condition, pair[1].missing)):
        row = [each for _, each in group]
        found.append(BatchRange(row[0].batch, row[-1].batch, row[0].condition, row[0].missing, row[0].reason))
    return found


def _format(names: CheckpointFiles) -> str:
    if not names.stores:
        return ""
    if names.kind_of_changes == "delta":
        return "HDFSBackedStateStore"
    ids = any(version.id for files in names.stores.values() for version in (*files.changes, *files.whole))
    return "RocksDB with ids" if ids else "RocksDB"


def _query_id(data: bytes) -> str:
    said = contents.decoded(data)
    return str(said.get("id", "")) if isinstance(said, dict) else ""


class _Look:
    """Describes one batch; what cannot be read is left out, because the batches' conditions tell of it."""

    def __init__(self, reader: CheckpointReader, names: CheckpointFiles, batch: int | None) -> None:
        self._reader = reader
        self._names = names
        self._batch = -1 if batch is None else batch

    def read(self, parse: Callable[[bytes], T], path: str) -> T | None:
        data = self._reader.contents({path})[path] if path in self._names else None
        return contents.parsed(parse, data)

    def operators(self, closure: Closure) -> list[OperatorState]:
        files = self._names.operator_metadata(self._batch)
        self._reader.contents(set(files.values()))
        said = {operator: self.read(contents.operator_stores, path) for operator, path in files.items()}
        stores: dict[int, dict[str, list[Store]]] = defaultdict(lambda: defaultdict(list))
        for store in sorted(closure.replayed or self._names.stores):
            stores[store.operator][store.name].append(store)
        sizes = self._sizes(closure)
        found = []
        for operator in sorted(set(stores) | set(files)):
            known = said.get(operator)
            described = [
                self._store(name, members, known, closure, sizes) for name, members in stores[operator].items()
            ]
            name, properties = (known.name, known.properties) if known else ("", {})
            found.append(OperatorState(operator, name, described, properties))
        return found

    def _sizes(self, closure: Closure) -> dict[Store, int]:
        """Return the size of the files of each store in a closure."""
        places = {store.path: store for store in closure.replayed}
        found: dict[Store, int] = defaultdict(int)
        for path, size in closure.files.items():
            parts = path.split("/")
            store = places.get("/".join(parts[:4])) or places.get("/".join(parts[:3]))
            if store is not None and "_metadata" not in parts:
                found[store] += size
        return found

    def _store(
        self, name: str, members: list[Store], known: OperatorStores | None, closure: Closure, sizes: dict[Store, int]
    ) -> StoreState:
        keys = {each.partition: closure.keys[each] for each in members if each in closure.keys}
        as_of = [self._batch - closure.replayed.get(each, 0) for each in members if each in closure.keys]
        return StoreState(
            name, len(members), sum(keys.values()) if keys else None, min(as_of, default=None),
            max(as_of, default=None), sum(sizes.get(each, 0) for each in members),
            max((closure.replayed.get(each, 0) for each in members), default=0), _skew(keys),
            _skew({each.partition: sizes.get(each, 0) for each in members}), self._states(members[0], known),
        )  # fmt: skip

    def _states(self, store: Store, known: OperatorStores | None) -> list[StateSchema]:
        """Return the schemas of a store. A file for each version of the schema: the last one counts."""
        below = "" if store.name == DEFAULT_STORE else f"/{store.name}"
        said = [each for each in known.schemas if f"/{store.name}/" in each] if known else []
        path = said[-1] if said else f"state/{store.operator}/0{below}/_metadata/schema"
        return self.read(state_schemas, path) or []


def _skew(values: dict[int, int]) -> Skew | None:
    """Compare the largest of these values of partitions with their mean."""
    total = sum(values.values())
    if not total:
        return None
    largest = max(values, key=lambda each: values[each])
    return Skew(round(values[largest] * len(values) / total, 2), largest)


# --- by names


def by_names(files: CheckpointFiles, batches: Iterable[int]) -> Generator[Wanted, Contents, list[Closure]]:
    """Return closures by batch, without files of state; for :meth:`CheckpointReader.run`."""
    # For all batches at once, in the time of one list. It reads the small files: offsets, commits and the operators'
    # metadata. It opens no zip, so tables stay unknown. In format 2 the commit before a batch names the versions that
    # it began with; only without it a changelog is read.
    wanted = sorted(batches)
    yield frozenset(
        path
        for batch in wanted
        for path in (f"commits/{batch}", f"offsets/{batch}", *files.operator_metadata(batch).values())
        if path in files
    )
    parsed: Parsed = {}
    holes: Holes = {}
    found = []
    for batch in wanted:
        closing = ClosingWithState(files, batch, parsed)
        try:
            head = yield from closing.collect_head()
            if head.ids:
                targets = closing.targets(head)
                yield from _follow(files, targets, holes)
            else:
                targets = {store: Version(batch + 1) for store in (yield from closing.stores(head))}
                _count(files, targets, holes)
        except Hole as hole:
            found.append(closing.result(hole))
        else:
            missing = next(filter(None, (holes[store][version] for store, version in targets.items())), "")
            found.append(closing.result(Hole(missing, "It is missing.") if missing else None))
    return found


def _count(files: CheckpointFiles, targets: Mapping[Store, Version], holes: Holes) -> None:
    """Find the holes of versions in format 1, each made from the version before."""
    for store, target in targets.items():
        known = holes.setdefault(store, {Version(0): ""})
        there = files.store(store)
        version, walked = target, [target]
        while version not in known and version not in there.whole and version in there.changes:
            version = Version(version.number - 1)
            walked.append(version)
        hole = known[version] if version in known else _hole(files, store, version, "")
        known.update(dict.fromkeys(walked, hole))


def _follow(
    files: CheckpointFiles, targets: Mapping[Store, Version], holes: Holes
) -> Generator[Wanted, Contents, None]:
    """Find the holes of versions in format 2, each made from that of the batch before, which was looked at just now."""
    loose = {}
    for store, version in targets.items():
        known = holes.setdefault(store, {})
        there = files.store(store)
        last = next(reversed(known), None)
        if version in there.whole or version not in there.changes or version.number == 1:
            known[version] = _hole(files, store, version, "")
        elif last is not None and last.number == version.number - 1:
            known[version] = known[last]
        else:
            loose[store] = there.changes[version]
    said = yield frozenset(loose.values())
    for store, path in loose.items():
        holes[store][targets[store]] = _hole_before(files, store, said.get(path), path)


def _hole(files: CheckpointFiles, store: Store, version: Version, before: str) -> str:
    """Return the hole of a version, given that of the version before."""
    there = files.store(store)
    if version in there.whole:
        return ""
    return before if version in there.changes else f"{store.path}/{version}.{files.kind_of_changes}"


def _hole_before(files: CheckpointFiles, store: Store, changelog: bytes | None, path: str) -> str:
    """Return the hole in the lineage of a version; its changelog itself if that cannot be read."""
    before = contents.parsed(contents.lineage, changelog)
    if before is None:
        return path
    hole = ""
    if before and before[0].number > 1 and before[0] not in files.stores[store].whole:
        hole = f"{store.path}/{before[0]}.zip"
    for version in before:
        hole = _hole(files, store, version, hole)
    return hole
