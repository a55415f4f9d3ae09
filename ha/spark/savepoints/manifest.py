"""Manifest: what a savepoint says of itself, in one small file beside the checkpoints of its queries.

<savepoint>/savepoint.json       the manifest
<savepoint>/spark/<query>/...    a whole checkpoint, which any Spark can take as its ``checkpointLocation``

The manifest is the last file that is written.
"""

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.closure import Closure
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.inputs import bound, inputs
from ha.checkpoints.names import CheckpointFiles
from ha.checkpoints.reading import CheckpointReader
from ha.spark.operator_names import named
from store.errors import Invalid

MANIFEST = "savepoint.json"

FORMAT = 1
"""A higher number means: what is below it cannot be read as here."""

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class SavedQuery(msgspec.Struct, frozen=True):
    """One query of a savepoint.

    Attributes:
        name: of the query.
        id: of Spark; a restart keeps it.
        batch: the newest that it had committed.
        begun: whether the next batch had been begun; a restart does exactly that one again.
        files: number of files.
        bytes: their total size.
        state: provider of its state, and the format of its files, as "RocksDB, format 2"; empty without state.
        operators: name of each operator with state, by its number.
        inputs: the folders that its file sources read.
    """

    name: str
    id: str
    batch: int
    begun: bool
    files: int
    bytes: int
    state: str = ""
    operators: dict[int, str] = {}
    inputs: list[str] = []


class Manifest(msgspec.Struct, frozen=True):
    """One savepoint.

    Attributes:
        job: whose it is.
        epoch: of the leader that took it.
        id: of the request for it.
        at: when it was complete, in ISO 8601, by the leader's clock; for people.
        by: who asked for it, for people.
        stopped: whether the job had been stopped for it.
        spark: version of PySpark beside the leader's sidecar; empty if there is none.
        queries: all that are in it.
        format: of this file and of what is beside it.
    """

    job: str
    epoch: int
    id: str
    at: str
    by: str
    stopped: bool
    spark: str
    queries: list[SavedQuery]
    format: int = FORMAT

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
        return f"{batches}: {self.files} files, {self.bytes:,} bytes"

    def bound(self, uri: str) -> list[str]:
        """Say which queries read files that are not on the file system of a URI; see :mod:`ha.checkpoints.inputs`."""
        return bound({each.name: each.inputs for each in self.queries}, uri)


def encoded(manifest: Manifest) -> bytes:
    """Return the file."""
    return msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"


def decoded(data: bytes, where: str) -> Manifest:
    """Read the file; ``where`` is its savepoint, for messages.

    Raises:
        Invalid: it is no manifest, or that of a later version of this package.
    """
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"{where} is no savepoint: its {MANIFEST} says something else ({error}).") from error
    if found.format != FORMAT:
        raise Invalid(f"{where} has format {found.format}: this version of the package reads format {FORMAT} only.")
    return found


def saved_query(name: str, reader: CheckpointReader, closure: Closure, *, begun: bool) -> SavedQuery:
    """Return what the manifest says of a query.

    Raises:
        StoreError: the store did not answer.
    """
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
    except (Unreadable, msgspec.DecodeError, AttributeError):  # it is only told; what a restart needs was computed
        identity = ""
    files = len(closure.files) + len(closure.rebuilt)
    read = inputs(reader, [*closure.files, *closure.rebuilt.values()])
    return SavedQuery(name, identity, batch, begun, files, closure.bytes, state, operators, read)
