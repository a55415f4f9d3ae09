"""Places of savepoints: at a URI, or among a job's own, below its leader directory; listed, read, and disposed of.

<leader directory>/savepoints/<name>/           a savepoint of the job; neither a cleanup nor retention touches it
<leader directory>/savepoints/_saving-<id>/     one that is not complete; the next one to be taken deletes it

<savepoint>/savepoint.json       its manifest, which describes it; the last file that is written
<savepoint>/spark/<query>/...    a whole checkpoint, which any Spark can take as its ``checkpointLocation``

A savepoint at a URI also has its incomplete copy beside it.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.inputs import bound, inputs
from ha.checkpoints.trees import Tree, check_bulk
from ha.config.setting import nearest
from ha.config.stores import Stores
from ha.spark.checkpoint_tools.copying import WORKERS
from ha.spark.stored.operator_names import named
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SAVEPOINTS, check_word
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, StoreError
from store.open import open_files

MANIFEST = "savepoint.json"

FORMAT = 1  # a higher number means: what is below it cannot be read as here

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"

HIDDEN = "_"  # begins names of folders that are no savepoints, or no longer

CALL_TIMEOUT_S = 20.0

MOST_BYTES = 1 << 20  # longest manifest

MOST_NAMED = 5  # names that a mistake is answered with


class SavedQuery(msgspec.Struct, frozen=True):
    """One query of a savepoint."""

    name: str  # of the query
    id: str  # of Spark; a restart keeps it
    batch: int  # the newest that it had committed
    begun: bool  # whether the next batch had been begun; a restart does exactly that one again
    files: int  # number of files
    bytes: int  # their total size
    state: str = ""  # provider of its state, and the format of its files, as "RocksDB, format 2"; empty without state
    operators: dict[int, str] = {}  # name of each operator with state, by its number
    inputs: list[str] = []  # the folders that its file sources read


class Manifest(msgspec.Struct, frozen=True):
    """One savepoint."""

    job: str  # whose it is
    epoch: int  # of the leader that took it
    id: str  # of the request for it
    at: str  # when it was complete, in ISO 8601, by the leader's clock; for people
    by: str  # who asked for it, for people
    stopped: bool  # whether the job had been stopped for it
    spark: str  # version of PySpark beside the leader's sidecar; empty if there is none
    queries: list[SavedQuery]  # all that are in it
    left_out: list[str] = []  # queries without a complete batch, which start from scratch, and names that no tool knows
    format: int = FORMAT  # of this file and of what is beside it

    @property
    def files(self) -> int:
        """Number of all files."""
        return sum(each.files for each in self.queries)

    @property
    def bytes(self) -> int:
        """Total size of all files."""
        return sum(each.bytes for each in self.queries)

    @property
    def said(self) -> str:
        """It in one line, for people."""
        batches = ", ".join(f"{each.name} after batch {each.batch}" for each in self.queries)
        without = (
            f"; without {', '.join(self.left_out)}: no batch was complete, or no tool knows the name"
            if self.left_out
            else ""
        )
        return f"{batches}: {self.files} files, {self.bytes:,} bytes{without}"

    def bound(self, uri: str) -> list[str]:
        """Return which queries read files that are not on a URI's file system; see :mod:`ha.checkpoints.inputs`."""
        return bound({each.name: each.inputs for each in self.queries}, uri)


def encoded(manifest: Manifest) -> bytes:
    """Return the file."""
    return msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"


def decoded(data: bytes, where: str) -> Manifest:
    """Read the file; ``where`` is its savepoint, for messages."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{where} is no savepoint: its {MANIFEST} says something else ({error}).") from error
    if found.format != FORMAT:
        raise Invalid(f"{where} has format {found.format}: this version of the package reads format {FORMAT} only.")
    return found


def saved_query(name: str, reader: CheckpointReader, closure: Closure, *, begun: bool) -> SavedQuery:
    """Return what the manifest says of a query."""
    batch = closure.batch
    described = CheckpointFiles(closure.files).operator_metadata(batch)
    logs = {"metadata", f"offsets/{batch}", f"commits/{batch}"}
    said = reader.contents(frozenset({*logs, *described.values()}))
    state, operators = "", dict[int, str]()
    try:
        identity = str(msgspec.json.decode(said["metadata"] or b"{}").get("id", ""))
        if any(path.startswith("state/") for path in closure.files):
            provider = contents.offsets(said[f"offsets/{batch}"] or b"").settings.get(_PROVIDER, "")
            numbered = 2 if contents.state_ids(said[f"commits/{batch}"] or b"") else 1
            kind = provider.rpartition(".")[2].removesuffix("StateStoreProvider").removesuffix("StateStore")
            state = f"{kind or 'unknown provider'}, format {numbered}"
        operators = named({number: said[path] or b"" for number, path in described.items()})
    except (
        contents.Unreadable,
        msgspec.DecodeError,
        AttributeError,
    ):  # it is only told; what a restart needs was computed
        identity = ""
    files = len(closure.files) + len(closure.rebuilt)
    read = inputs(reader, [*closure.files, *closure.rebuilt.values()])
    return SavedQuery(name, identity, batch, begun, files, closure.bytes, state, operators, read)


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
