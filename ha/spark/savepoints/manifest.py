"""Manifest: describes a savepoint, in one small file beside the checkpoints of its queries.

<savepoint>/savepoint.json       the manifest
<savepoint>/spark/<query>/...    a whole checkpoint, which any Spark can take as its ``checkpointLocation``

The manifest is the last file that is written.
"""

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.inputs import bound, inputs
from ha.spark.stored.operator_names import named
from store.errors import Invalid

MANIFEST = "savepoint.json"

FORMAT = 1  # a higher number means: what is below it cannot be read as here

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


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
    except (Unreadable, msgspec.DecodeError, AttributeError):  # it is only told; what a restart needs was computed
        identity = ""
    files = len(closure.files) + len(closure.rebuilt)
    read = inputs(reader, [*closure.files, *closure.rebuilt.values()])
    return SavedQuery(name, identity, batch, begun, files, closure.bytes, state, operators, read)
