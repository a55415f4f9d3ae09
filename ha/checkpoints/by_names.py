"""By names: which batches can be continued, as far as names tell. For all batches at once, in the time of one list.

Of small files it reads offsets, commits and the operators' metadata; no zip is opened, so nothing is known of tables.
In format 2 the commit before a batch says from which version its versions were made; a changelog is read only where
that commit is forgotten.
"""

from collections.abc import Generator, Iterable, Mapping

from ha.checkpoints import contents
from ha.checkpoints.closure import Closing, Closure, Contents, Hole, Parsed, Wanted
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.names import CheckpointFiles, Store, StoreFiles, Version

Holes = dict[Store, dict[Version, str]]
"""By store and version, the path of the first file that is missing; empty if there is none."""


def by_names(files: CheckpointFiles, batches: Iterable[int]) -> Generator[Wanted, Contents, list[Closure]]:
    """Look at these batches; run it with :meth:`ha.checkpoints.reading.CheckpointReader.by_names`.

    Yields:
        the paths of files whose contents it needs next.

    Returns:
        a closure of each, by number, without the files of its state.
    """
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
        closing = Closing(files, batch, parsed)
        try:
            head = yield from closing.collect_head()
            if head.ids:
                targets = closing.targets(head)
                yield from _follow(files, targets, holes)
            else:
                targets = {store: Version(batch + 1) for store in (yield from closing.stores(head))}
                _count(files, targets, holes)
        except Hole as hole:
            found.append(closing.result(hole.path, str(hole)))
        else:
            missing = next(filter(None, (holes[store][version] for store, version in targets.items())), "")
            found.append(closing.result(missing, "It is missing." if missing else ""))
    return found


def _count(files: CheckpointFiles, targets: Mapping[Store, Version], holes: Holes) -> None:
    """Find the holes of versions in format 1, each made from the version before."""
    for store, target in targets.items():
        known = holes.setdefault(store, {Version(0): ""})
        there = files.stores.get(store, StoreFiles({}, {}))
        first = next(reversed(known)).number + 1
        if len(known) == 1:
            first = min(target.number, *(each.number for each in (*there.changes, *there.whole)), target.number)
        for number in range(first, target.number + 1):
            before = known.get(Version(number - 1), f"{store.path}/{number - 1}.{files.kind_of_changes}")
            known[Version(number)] = _hole(files, store, Version(number), before)


def _follow(
    files: CheckpointFiles, targets: Mapping[Store, Version], holes: Holes
) -> Generator[Wanted, Contents, None]:
    """Find the holes of versions in format 2, each made from that of the batch before, which was looked at just now."""
    loose = {}
    for store, version in targets.items():
        known = holes.setdefault(store, {})
        there = files.stores.get(store, StoreFiles({}, {}))
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
    there = files.stores.get(store, StoreFiles({}, {}))
    if version in there.whole:
        return ""
    return before if version in there.changes else f"{store.path}/{version}.{files.kind_of_changes}"


def _hole_before(files: CheckpointFiles, store: Store, changelog: bytes | None, path: str) -> str:
    """Return the hole in the lineage of a version; its changelog itself if that cannot be read."""
    try:
        before = contents.lineage(changelog or b"")
    except Unreadable:
        return path
    hole = ""
    if before and before[0].number > 1 and before[0] not in files.stores[store].whole:
        hole = f"{store.path}/{before[0]}.zip"
    for version in before:
        hole = _hole(files, store, version, hole)
    return hole
