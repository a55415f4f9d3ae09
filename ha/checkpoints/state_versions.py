"""State versions: which files of state a restart reads, in both formats. Pure; closure.py has the other files.

And what Spark reads first of a checkpoint as it lies, even if an older batch could be resumed.
"""

import re
from collections.abc import Generator, Iterable, Mapping

from ha.checkpoints import contents
from ha.checkpoints.check_sums import hadoop_sums
from ha.checkpoints.checkpoint_files import DEFAULT_STORE, CheckpointFiles, Store, StoreFiles, Version
from ha.checkpoints.closure import Asking, Closing, Closure, Contents, Form, Head, Hole, Parsed, Wanted
from ha.checkpoints.contents import Offsets, OperatorStores

MOST_REPLAYED = 50  # changes after an older version that Spark takes in the place of a damaged one, by default

# Operators that always have one partition; so has an aggregation without a key.
SINGLE_PARTITION = frozenset({"globalLimit"})

_OF_STATE = re.compile(r"state/.+/_metadata/\.(schema|metadata)\.crc")


def closure(files: CheckpointFiles, batch: int, parsed: Parsed | None = None, *, begun: bool = False) -> Asking:
    """Compute the closure of a batch, also of one that is not restorable; for :meth:`CheckpointReader.closures`."""
    # `parsed`, what small files say, is shared by closures that are given the same contents. `begun`: the next batch
    # was begun, and is to be done again with the same input.
    known: Parsed = {} if parsed is None else parsed
    asked = first = ClosingWithState(files, batch, known, begun=begun)
    hole: Hole | None = None
    while True:
        try:
            yield from asked.collect()
        except Hole as found:
            hole = hole or found
            if not found.wholes:
                return first.result(hole)
            files = files.without(found.wholes)
            asked = ClosingWithState(files, batch, known, begun=begun)
        else:
            return asked.result() if asked.replayed_of(files.skipped) <= MOST_REPLAYED else first.result(hole)


class ClosingWithState(Closing):
    """One closure with its state, as far as it has been collected."""

    def replayed_of(self, wholes: Iterable[str]) -> int:
        """Return the most changes that a store of these whole versions reads."""
        named = filter(None, map(self._names.state_file, wholes))
        return max((self._replayed.get(store, 0) for store, _ in named), default=0)

    def collect(self) -> Generator[Wanted, Contents, None]:
        """Collect everything."""
        head = yield from self.collect_head()
        yield from self.check_forms(head)
        if head.ids:
            yield from self._collect_versions_by_id(self.targets(head))
        else:
            yield from self._collect_versions_by_number((yield from self.stores(head)))

    # --- state, format 1: names carry the version only

    def stores(self, head: Head) -> Generator[Wanted, Contents, list[Store]]:
        """Return every store that there must be."""
        schemas = frozenset(f"state/{each}/0/_metadata/schema" for each in self._names.operators)
        said = yield frozenset(path for path in schemas if path in self._names)
        found: list[Store] = []
        for operator in sorted(self._names.operators | set(head.operators)):
            partitions = self._partitions(operator, head, said)
            known = head.operators.get(operator)
            names = known.stores if known else sorted({e.name for e in self._names.stores if e.operator == operator})
            if len(found) + partitions * len(names) > len(self._names.sizes):  # each has a file at least
                wanted = (Store(operator, partition, name) for partition in range(partitions) for name in names)
                lost = next((each for each in wanted if each not in self._names.stores), Store(operator, 0, names[0]))
                raise Hole(f"{lost.path}/{self._batch + 1}.{self._names.kind_of_changes}", "It is missing.")
            found += [Store(operator, partition, name) for partition in range(partitions) for name in names]
        return found

    def _collect_versions_by_number(self, stores: list[Store]) -> Generator[Wanted, Contents, None]:
        snapshots = {}
        target = self._batch + 1
        for store in stores:
            files = self._names.store(store)
            # Those with an id are another format's; here they are met if the commit that tells the ids is damaged.
            base = max((each.number for each in files.whole if each.number <= target and not each.id), default=0)
            if base:
                snapshots[store] = files.whole[Version(base)]
            else:
                self._need_whole(store)
            self._collect_changes(store, files, (Version(each) for each in range(base + 1, target + 1)))
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
        """Return the version that the batch has written of each store."""
        found: dict[Store, Version] = {}
        for operator, partitions in sorted(head.ids.items()):
            for partition, each in enumerate(partitions):
                names = self._names_of(operator, partition, each, head.operators)
                for name, identity in zip(names, each, strict=True):
                    found[Store(operator, partition, name)] = Version(self._batch + 1, identity)
        return found

    def _collect_versions_by_id(self, targets: Mapping[Store, Version]) -> Generator[Wanted, Contents, None]:
        stores = {store: self._names.store(store) for store in targets}
        behind = {store: target for store, target in targets.items() if target not in stores[store].whole}
        for store, target in behind.items():
            self._collect_changes(store, stores[store], [target])
        snapshots = {store: stores[store].whole[target] for store, target in targets.items() if store not in behind}
        lineages = yield from self._lineages(behind, stores)
        for store, target in behind.items():
            before = lineages[store]
            base = max((each for each in before if each in stores[store].whole), default=None)
            if base is not None:
                snapshots[store] = stores[store].whole[base]
            else:
                self._need_whole(store)
            needed = [each for each in before if base is None or each.number > base.number]
            self._collect_changes(store, stores[store], [*needed, target])
        yield from self._collect_snapshots(snapshots)

    def _lineages(
        self, targets: Mapping[Store, Version], stores: Mapping[Store, StoreFiles]
    ) -> Generator[Wanted, Contents, dict[Store, list[Version]]]:
        """Return the versions before each target, from the first or a whole one on."""
        found: dict[Store, list[Version]] = {store: [] for store in targets}
        wanted = dict(targets)
        while wanted:
            said = yield frozenset(stores[store].changes[version] for store, version in wanted.items())
            for store, version in list(wanted.items()):
                before = self.read(contents.lineage, said, stores[store].changes[version])
                found[store] = [*before, *found[store]]
                first = next(iter(before), version)
                if not before or first.number <= 1 or any(each in stores[store].whole for each in before):
                    del wanted[store]
                elif first.number < version.number and first in stores[store].changes:
                    wanted[store] = first  # of a version that is whole, which is damaged or gone
                else:
                    path = f"{store.path}/{first}.zip"
                    raise Hole(path, "It is missing, and changes before it are not known.")
        return found

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

    def _need_whole(self, store: Store) -> None:
        """Refuse a store of variables that would be repaired by changes alone: these name no column families."""
        if self._names.skipped and self._names.has_variables(store.operator):
            raise Hole(next(iter(self._names.skipped)), "It is damaged, and no older version is whole.")

    def _collect_changes(self, store: Store, files: StoreFiles, versions: Iterable[Version]) -> None:
        number = 0
        for number, version in enumerate(versions, 1):  # noqa: B007  # how many there are
            self.need(files.changes.get(version) or f"{store.path}/{version}.{self._names.kind_of_changes}")
        self._replayed[store] = number

    def _collect_snapshots(self, snapshots: Mapping[Store, str]) -> Generator[Wanted, Contents, None]:
        """Add whole versions, and the tables that those of RocksDB name."""
        said = yield frozenset(path for path in snapshots.values() if path.endswith(".zip"))
        holes: dict[str, Hole] = {}
        for store, path in snapshots.items():
            self._replayed.setdefault(store, 0)
            try:
                self._collect_snapshot(store, path, said)
            except Hole as hole:
                if hole.altered and not path.endswith(".zip"):
                    raise
                hole.altered = False  # Spark copies those of RocksDB to its host, and Hadoop compares its sums then
                holes[path] = hole
        for first in holes.values():
            first.wholes = [*holes]
            raise first

    def _collect_snapshot(self, store: Store, path: str, said: Contents) -> None:
        self.need(path)
        if path.endswith(".zip"):
            found = self.read(contents.whole, said, path)
            self._keys[store] = found.keys
            for table, size in found.files.items():
                self.need(f"{store.path}/{table}", size)


def start(files: CheckpointFiles, parsed: Parsed | None = None) -> Generator[Wanted, Contents, Closure]:
    """Read what a start reads; for :meth:`CheckpointReader.start`."""
    # It reads ``metadata``, the newest offsets and those before, the newest commit, and each file source's whole log,
    # whose newest entry may be of a batch that is not begun yet. The closure of the newest commit contains the rest.
    # It returns a closure of the batch that Spark does next, which tells the first file that is missing or damaged.
    begun, committed = files.begun, max(files.batches, default=-1)
    batch = max(begun, committed + 1)
    reading = Closing(files, batch, {} if parsed is None else parsed)
    try:
        yield from _read_start(reading, files, begun, committed)
    except Hole as hole:
        return reading.result(hole)
    return reading.result()


def _read_start(
    reading: Closing, files: CheckpointFiles, begun: int, committed: int
) -> Generator[Wanted, Contents, None]:
    if begun < 0 > committed:
        if "metadata" in files:
            yield from reading.check({"metadata": contents.query_id})
        return
    newest = max(begun, committed)
    forms: dict[str, Form] = {"metadata": contents.query_id, f"offsets/{newest}": contents.offsets}
    if newest > 0:
        forms[f"offsets/{newest - 1}"] = contents.offsets
    if committed >= 0:
        forms[f"commits/{committed}"] = contents.state_ids
    said = yield from reading.check(forms)
    if committed >= 0 and said[f"commits/{committed}"] and committed < begun - 1:
        raise Hole(f"commits/{begun - 1}", "It is missing, and tells the ids of the state.")
    written = {hadoop_sums(f"offsets/{begun + 1}"), hadoop_sums(f"commits/{max(begun, committed + 1)}")}
    for sums in sorted(path for path in files.sizes if path in written or _OF_STATE.fullmatch(path)):
        if (path := sums.removesuffix(".crc").replace("/.", "/")) not in files:
            raise Hole(sums, f"It is left of {path}, which Spark cannot write as long as it is there: delete it.")
    last: Offsets = said[f"offsets/{newest}"]
    before: Offsets = said.get(f"offsets/{newest - 1}", last)
    if len(before.sources) != len(last.sources) and not last.named:
        raise Hole(f"offsets/{newest}", f"It has {len(last.sources)} sources, and there were {len(before.sources)}.")
    reading.need_sources(last, f"offsets/{newest}", whole=True)
    yield from reading.check()
