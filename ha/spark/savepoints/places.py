"""Places of savepoints: at a URI, or among a job's own, below its leader directory; listed, read, and disposed of.

<leader directory>/savepoints/<name>/           a savepoint of the job; neither a cleanup nor retention touches it
<leader directory>/savepoints/_saving-<id>/     one that is not complete; the next one to be taken deletes it

A savepoint at a URI has its incomplete copy beside it likewise.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ha.checkpoints.trees import Tree, check_bulk
from ha.config.stores import Stores
from ha.spark.checkpoint_copy.copying import WORKERS
from ha.spark.savepoints.manifest import MANIFEST, Manifest, decoded
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SAVEPOINTS, check_word
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound
from store.open import open_files

HIDDEN = "_"
"""Begins the name of what is no savepoint, or not any more."""

CALL_TIMEOUT_S = 20.0

MOST_BYTES = 1 << 20
"""Longest manifest."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a savepoint is, or will be.

    Attributes:
        files: the store.
        parent: path of the folder that it is in.
        name: its own name there.
    """

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
        """Return its manifest.

        Raises:
            Invalid: there is no savepoint.
            StoreError: the store did not answer.
        """
        path = f"{self.path}/{MANIFEST}"
        try:
            data = self.files.call("savepoint_read", lambda files: files.read(path, MOST_BYTES), CALL_TIMEOUT_S)
        except NotFound as error:
            raise Invalid(f"There is no savepoint at {self.uri}: it has no {MANIFEST}.") from error
        return decoded(data, self.uri)

    def dispose(self) -> Manifest:
        """Delete it, and return what it said of itself. It is gone at once, even if its files go one by one.

        Raises:
            Invalid: there is no savepoint.
            StoreError: the store did not answer.
        """
        found, hidden = self.read(), self.beside(f"disposed-{uuid.uuid4().hex[:8]}")
        self.files.call("savepoint_rename", lambda files: files.rename(self.path, hidden), CALL_TIMEOUT_S)
        self.files.call("savepoint_delete", lambda files: files.delete(hidden, recursive=True), CALL_TIMEOUT_S)
        return found


@contextmanager
def opened(stores: Stores, directory: FencedDirectory | None, where: str) -> Iterator[Place]:
    """Open the place of a savepoint.

    Args:
        stores: their settings are used; the connections are new ones, so a copy delays no lease.
        directory: the leader directory; None if only a URI will do.
        where: a URI, or the name of a savepoint of the job.

    Raises:
        Invalid: it is no URI that can be used.
        InvalidName: it is neither a URI nor such a name.
    """
    if "://" in where:
        parent, _, name = where.rstrip("/").rpartition("/")
        open_files(where).close()  # raises if it is not a URI
        check_bulk(where)
        if name.startswith(HIDDEN):
            raise Invalid(f"{where!r} cannot be a savepoint's place: its name begins with an underscore.")
        with stores.open(parent, workers=WORKERS) as files:
            yield Place(files, "", name)
        return
    check_word(where, "a savepoint")
    if directory is None:
        raise Invalid(f"{where!r} is no URI: write file://, hdfs:// or webhdfs://.")
    check_bulk(stores.files.uri)
    with stores.open(stores.files.uri, workers=WORKERS) as files:
        yield Place(files, directory.at(SAVEPOINTS), where)


def own(stores: Stores, directory: FencedDirectory) -> list[tuple[str, Manifest]]:
    """Return the job's own savepoints by name, oldest first.

    Raises:
        Fenced: another leader has taken over; look again.
        StoreError: the store did not answer.
    """
    found = []
    for entry in directory.list(SAVEPOINTS):
        if not entry.name.startswith(HIDDEN):
            place = Place(stores.files, directory.at(SAVEPOINTS), entry.name)
            with suppress(Invalid):  # somebody has put something else there
                found.append((entry.name, place.read()))
    return sorted(found, key=lambda each: (each[1].at, each[0]))
