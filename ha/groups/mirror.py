"""Mirror: copies a leader directory to another root, in rounds while the job runs, and a last one without writers.

    <target>/<job>/moving/tree          the copy, file by file; each is complete
    <target>/<job>/moving/parts         files on their way into it
    <target>/<job>/moving/listing.json  which writing of each file that is

A name in a checkpoint can get other content. So a file is copied again if the source's time stamp of it has changed.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from ha.checkpoints.trees import Tree
from ha.groups.marks import COPYING
from ha.spark.checkpoint_tools.copying import CopyProgress, Staging, Told
from leader.layout.information import BAR
from leader.layout.lease import Lease
from leader.layout.names import HISTORY, RECORD, STAGED
from store.bounded import BoundedFiles
from store.errors import Conflict, NotFound
from store.files import Entry, Files

CALL_TIMEOUT_S = 20.0

MAX_LISTING_BYTES = 1 << 28

# Folders that are not copied: the record is a new one, and incomplete files stay where they are.
LEFT_OUT = (RECORD, STAGED)

Writings = dict[str, tuple[int, int]]  # size and time stamp of each file, by its path


class Mirror:
    """The copy of one job's leader directory at another root. The progress of a round is ``told`` from any thread."""

    def __init__(self, source: BoundedFiles, target: BoundedFiles, job: str, told: Told | None = None) -> None:
        self._source, self._target, self._job = source, target, job
        self._home = f"{job}/{COPYING}"
        self._staging = Staging(target, self._home, told, needed=lambda _: False)

    @property
    def tree(self) -> str:
        """The path of the copy."""
        return self._staging.tree.path

    def round(self, leader: str, may_go_on: Callable[[], object] = bool) -> int:
        """Copy what has changed since the last round; returns how many bytes that were."""
        # An error from `may_go_on`, called before each file, ends the round. Conflict: a file has changed meanwhile:
        # the next round copies it. NotFound: a file, or the leader directory, is gone: the next round copies the rest.
        tree = Tree(self._source, f"{self._job}/{leader}")
        found = {path: each for path, each in contents(tree).items() if each.is_directory or not _passing(path)}
        copied = self._copy(tree, found, may_go_on)
        self._make(found)
        return copied

    def last(self, leader: str, lease: Lease, may_go_on: Callable[[], object] = bool) -> None:
        """Complete the copy: all files and all names, and a record with this lease. There must be no writers."""
        tree = Tree(self._source, f"{self._job}/{leader}")
        found = contents(tree)
        self._copy(tree, found, may_go_on, last=True)
        record = self._source.call("bulk_list", lambda files: files.list(f"{tree.path}/{RECORD}"), CALL_TIMEOUT_S)
        bars = [each.name for each in record if each.name.startswith(BAR)]
        more = self._make(found)

        def settle(files: Files) -> None:
            for path in (RECORD, *more):  # the record is of a try that was interrupted
                with suppress(NotFound):
                    files.delete(f"{self.tree}/{path}", recursive=True)
            for path in ("", *bars, lease.name):  # the lease comes last
                files.make_directory(f"{self.tree}/{RECORD}/{path}".rstrip("/"))

        self._target.call("bulk_settle", settle, CALL_TIMEOUT_S + len(more) + len(bars))

    def discard(self) -> None:
        """Delete what is left of a copy."""
        with suppress(NotFound):
            self._target.call("bulk_delete", lambda files: files.delete(self._home, recursive=True), CALL_TIMEOUT_S)

    def _make(self, found: Mapping[str, Entry]) -> list[str]:
        """Make the directories that the copy lacks; returns those that it has too much, the deepest first."""
        wanted = {path for path, each in found.items() if each.is_directory}
        there = {path for path, each in contents(self._staging.tree).items() if each.is_directory}
        missing = sorted(wanted - there)  # a folder comes before what is in it

        def make(files: Files) -> None:
            for path in missing:
                files.make_directory(f"{self.tree}/{path}")

        self._target.call("bulk_settle", make, CALL_TIMEOUT_S + len(missing))
        return sorted(there - wanted, reverse=True)

    def _copy(
        self, source: Tree, found: Mapping[str, Entry], may_go_on: Callable[[], object], *, last: bool = False
    ) -> int:
        """Copy files; returns how many bytes. The last round writes no listing: by an old one all is copied again."""
        wanted: Writings = {
            path: (each.size, each.modified_ms) for path, each in found.items() if not each.is_directory
        }
        self._staging.begin(CopyProgress())
        known, there = self._listing(), self._staging.tree.listing()
        self._staging.remove(path for path in there if known.get(path) != wanted.get(path))
        if not last:  # before the files: what is copied is this writing, or a later one
            data, name = msgspec.json.encode(wanted), f"{self._home}/listing.json"
            self._target.call("bulk_write", lambda files: files.write(name, data), CALL_TIMEOUT_S)
        self._staging.fill(source, {path: size for path, (size, _) in wanted.items()}, may_go_on)
        return sum(size for path, (size, _) in wanted.items() if path not in there or known.get(path) != wanted[path])

    def _listing(self) -> Writings:
        try:
            name = f"{self._home}/listing.json"
            data = self._target.call("bulk_read", lambda files: files.read(name, MAX_LISTING_BYTES), CALL_TIMEOUT_S)
            return msgspec.json.decode(data, type=Writings)
        except (NotFound, msgspec.MsgspecError):
            return {}


def contents(tree: Tree) -> dict[str, Entry]:
    """Return the files and directories of a leader directory that a copy has, too."""
    return {path: each for path, each in tree.names().items() if path.partition("/")[0] not in LEFT_OUT}


def check_same(source: Tree, target: Tree) -> None:
    """Raise ``Conflict`` unless a copy has the files, sizes, names and bars of what it was copied from."""
    # Lines of history may differ: leaders and operators write them without waiting, also the mover itself.
    here, there = (
        {path: each.size for path, each in tree.names().items() if path.partition("/")[0] not in (*LEFT_OUT, HISTORY)}
        | {f"{RECORD}/{each}": 0 for each in tree.names(RECORD) if each.startswith(BAR)}
        for tree in (source, target)
    )
    if here != there:
        differs = sorted(path for path in here.keys() | there.keys() if here.get(path) != there.get(path))
        raise Conflict(f"{differs[0]} was changed while it was copied ({len(differs)} names differ).")


def _passing(path: str) -> bool:
    """Whether a file is on its way to another name, as Spark writes them."""
    name = path.rpartition("/")[2]
    return (name.startswith(".") and not name.endswith(".crc")) or ".tmp" in name or ".dfs." in name
