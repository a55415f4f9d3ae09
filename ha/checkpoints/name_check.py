"""Name check: which batches can be resumed, judged by file names. For all batches at once, in the time of one list.

It reads the small files: offsets, commits and the operators' metadata. It opens no zip, so tables stay unknown.
In format 2 the commit before a batch names the versions that it began with; only without it a changelog is read.
"""

from collections.abc import Generator, Iterable, Mapping

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import CheckpointFiles, Store, Version
from ha.checkpoints.closure import Closure, Contents, Hole, Parsed, Wanted
from ha.checkpoints.state_versions import ClosingWithState

# By store and version, the path of the first file that is missing; empty if there is none.
Holes = dict[Store, dict[Version, str]]


def by_names(files: CheckpointFiles, batches: Iterable[int]) -> Generator[Wanted, Contents, list[Closure]]:
    """Return closures by batch, without files of state; for :meth:`CheckpointReader.by_names`."""
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
