"""Places of savepoints: at a URI, or among a job's own, below its leader directory; listed, read, and disposed of.

<leader directory>/savepoints/<name>/           a savepoint of the job; neither a cleanup nor retention touches it
<leader directory>/savepoints/_saving-<id>/     one that is not complete; the next one to be taken deletes it

A savepoint at a URI also has its incomplete copy beside it.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ha.checkpoints.trees import Tree, check_bulk
from ha.config.setting import nearest
from ha.config.stores import Stores
from ha.spark.checkpoint_tools.copying import WORKERS
from ha.spark.savepoints.manifest import MANIFEST, Manifest, decoded
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SAVEPOINTS, check_word
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, StoreError
from store.open import open_files

HIDDEN = "_"  # begins names of folders that are no savepoints, or no longer

CALL_TIMEOUT_S = 20.0

MOST_BYTES = 1 << 20  # longest manifest

MOST_NAMED = 5  # names that a mistake is answered with


@dataclass(frozen=True, slots=True)
class SavepointPlace:
    """Where a savepoint is, or will be: a name in a folder of a store."""

    files: BoundedFiles
    parent: str
    name: str

    @property
    def path(self) -> str:
        """Path in the store."""
        return f"{self.parent}/{self.name}".lstrip("/")

    @property
    def uri(self) -> str:
        """URI at present; that of a job's own savepoint changes with each leader."""
        return self.files.at(self.path)

    @property
    def tree(self) -> Tree:
        """All its files."""
        return Tree(self.files, self.path)

    def beside(self, what: str) -> str:
        """Return a hidden path beside it."""
        return f"{self.parent}/{HIDDEN}{what}".lstrip("/")

    def read(self) -> Manifest:
        """Return its manifest; raises ``Invalid`` if there is no savepoint."""
        path = f"{self.path}/{MANIFEST}"
        try:
            data = self.files.call("savepoint_read", lambda files: files.read(path, MOST_BYTES), CALL_TIMEOUT_S)
        except NotFound as error:
            raise Invalid(f"There is no savepoint at {self.uri}: it has no {MANIFEST}.{self._others()}") from error
        return decoded(data, self.uri)

    def _others(self) -> str:
        """Return which names like it lie beside it; empty if none does, or the store does not say."""
        with suppress(StoreError):
            found = self.files.call("savepoint_list", lambda files: files.list(self.parent), CALL_TIMEOUT_S)
            known = [each.name for each in found if not each.name.startswith(HIDDEN)]
            return f" Beside it: {', '.join(nearest(self.name, known, MOST_NAMED) or known[:MOST_NAMED]) or 'nothing'}."
        return ""

    def read_of(self, job: str) -> Manifest:
        """Return its manifest; raises ``Invalid`` if it is another job's."""
        found = self.read()
        if found.job != job:
            raise Invalid(f"The savepoint at {self.uri} is of job {found.job!r}, not of {job!r}: it is kept.")
        return found

    def dispose(self, job: str) -> Manifest:
        """Delete it, and return what it said of itself. It is gone at once, even if its files go one by one."""
        found, hidden = self.read_of(job), self.beside(f"disposed-{uuid.uuid4().hex[:8]}")
        self.files.call("savepoint_rename", lambda files: files.rename(self.path, hidden), CALL_TIMEOUT_S)
        self.files.call("savepoint_delete", lambda files: files.delete(hidden, recursive=True), CALL_TIMEOUT_S)
        return found


@contextmanager
def opened(stores: Stores, directory: FencedDirectory | None, where: str) -> Iterator[SavepointPlace]:
    """Open the place of a savepoint: a URI, or a name among the job's own; without a directory only a URI will do."""
    # The connections are new ones, with the settings of the stores, so a copy delays no lease.
    if "://" in where:
        parent, _, name = where.rstrip("/").rpartition("/")
        open_files(where).close()  # raises if it is not a URI
        check_bulk(where)
        if name.startswith(HIDDEN):
            raise Invalid(f"{where!r} cannot be a savepoint's place: its name begins with an underscore.")
        with stores.open_root(parent, workers=WORKERS) as files:
            yield SavepointPlace(files, "", name)
        return
    check_word(where, "a savepoint")
    if directory is None:
        raise Invalid(f"{where!r} is no URI: write file://, hdfs:// or webhdfs://.")
    check_bulk(stores.files.uri)
    with stores.open(stores.files.uri, workers=WORKERS) as files:
        yield SavepointPlace(files, directory.at(SAVEPOINTS), where)


def own(stores: Stores, directory: FencedDirectory) -> list[tuple[str, Manifest]]:
    """Return the job's own savepoints by name, oldest first."""
    found = []
    for entry in directory.list(SAVEPOINTS):
        if not entry.name.startswith(HIDDEN):
            place = SavepointPlace(stores.files, directory.at(SAVEPOINTS), entry.name)
            with suppress(Invalid):  # somebody has put something else there
                found.append((entry.name, place.read()))
    return sorted(found, key=lambda each: (each[1].at, each[0]))
