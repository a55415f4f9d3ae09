"""Scratch: a throw-away job with copies of a job's checkpoints, in a hidden directory beside the jobs.

    <root>/.preflight-<id>/<job>/<leader directory>/spark/<query>/    the copy, in which a dry run does one batch
    <root>/.preflight-<id>/copying-<query>/                           while it is copied
    <root>/.preflight-<id>/idle/                                      checkpoints of queries that do nothing

The copy is the closure of the batch before the newest one, with the newest one begun. So the dry run does the newest
batch once more: its input is known to be there, and no longer than it was. Schemas and operators' metadata are left
out, because Spark never rewrites those that it finds: it writes what the program has, and that is compared by name.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.contents import Offsets
from ha.checkpoints.inputs import newest_files
from ha.checkpoints.layouts import Layout, layouts
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import fault
from ha.config.stores import Stores
from ha.spark.checkpoint_tools.copying import WORKERS, Staging, Told
from ha.spark.checkpoint_tools.exporting import fill
from ha.spark.stored.locations import METADATA, relocated
from leader.job.admin import JobAdmin
from leader.layout import tree
from leader.layout.names import SPARK, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import Invalid, StoreError

DIRECTORY = ".preflight-"  # no job's name begins with a dot, and Spark skips such names when it lists a directory above
LEFT_OVER_MS = 2 * 86_400_000  # age at which the directory of a dry run is a leftover: it takes a day at most
CALL_TIMEOUT_S = 20.0

ENCODING = "spark.sql.streaming.stateStore.encodingFormat"

_DESCRIBED = re.compile(r"state/[0-9]+/(?:[^_/][^/]*/)*_(?:metadata|stateSchema)/.+")

_NEWEST_FILES = 5  # files of a source's log that are looked at: they tell where it reads


class Copy(msgspec.Struct, frozen=True):
    """One query's checkpoint, and its copy."""

    job: str  # its job
    query: str  # its name
    batch: int  # number of the batch that the dry run is to do
    replayed: bool  # whether that batch was done before, so that its input is known
    layouts: dict[int, Layout]  # its operators with state, by number
    offsets: Offsets  # of the batch; empty if it was not begun
    read: dict[str, list[str]]  # some files that each file source has read, by the source's number or name


class Scratch:
    """The throw-away job; :func:`scratch` makes one."""

    def __init__(self, stores: Stores, files: BoundedFiles, job: str) -> None:
        self._stores = stores
        self._files = files
        self._job = job
        self._first = LeaderDirectory(0, tree.NOBODY)

    @property
    def uri(self) -> str:
        """Its root: to the program, the setting ``files``."""
        return self._files.uri

    @property
    def mark(self) -> str:
        """Its name, which every path of it contains, and no other path."""
        return self.uri.rstrip("/").rpartition("/")[2]

    @property
    def leader_directory(self) -> str:
        """URI of the leader directory, as long as the throw-away job had no leader."""
        return self._files.at(f"{self._job}/{self._first.name}")

    def copy(self, query: str, told: Told | None = None) -> Copy | None:
        """Copy a query's checkpoint; None if it has committed no batch. Invalid if it is damaged."""
        with self._stores.open(self._stores.files.uri, workers=WORKERS) as inside:
            admin = JobAdmin(inside, None, self._stores.patience)
            source = _Newest(admin, inside, self._job, query)
            if not source.begin():
                return None
            if bad := fault(lambda: source.look()[0]):
                raise Invalid(f"The checkpoint is damaged: Spark would not start from it. {bad.missing}: {bad.reason}")
            place = f"{self._job}/{self._first.name}/{SPARK}/{query}"
            staging = Staging(self._files, f"copying-{query}", told, tree=place)
            found = fill(staging, source)  # type: ignore[arg-type]  # it finds as a Source does
            for path in filter(METADATA.fullmatch, found.files):
                staging.rewrite(path, partial(relocated, f"{self.leader_directory}/{SPARK}/{query}"))
            assert source.copied is not None, "it was found"
            return source.copied

    def layouts(self, query: str) -> dict[int, Layout]:
        """Return what the program has planned for a query: its operators with state, by number."""
        directory = JobAdmin(self._files, None, self._stores.patience).directory(self._job)
        reader = CheckpointReader(Tree(self._files, directory.at(f"{SPARK}/{query}")))
        files = reader.files()
        return reader.run(layouts(files, max(0, files.begun)))


@contextmanager
def scratch(stores: Stores, job: str) -> Iterator[Scratch]:
    """Make a throw-away job, and delete it at the end."""
    name = f"{DIRECTORY}{uuid.uuid4().hex[:12]}"
    with stores.open(stores.files.at(name), workers=WORKERS) as files:
        try:
            files.call("preflight", lambda driver: tree.create(driver, job), CALL_TIMEOUT_S)
            _forget_leftovers(stores, name)
            yield Scratch(stores, files, job)
        finally:
            with suppress(StoreError):  # a later dry run deletes it
                stores.files.call("preflight", lambda driver: driver.delete(name, recursive=True), CALL_TIMEOUT_S)


def _forget_leftovers(stores: Stores, name: str) -> None:
    """Delete what killed dry runs have left, by the clock of the store."""
    there = {each.name: each.modified_ms for each in stores.files.call("preflight", lambda it: it.list(""), 20.0)}
    for other, modified_ms in there.items():
        if other.startswith(DIRECTORY) and modified_ms < there.get(name, 0) - LEFT_OVER_MS:
            with suppress(StoreError):
                stores.files.call("preflight", lambda it, left=other: it.delete(left, recursive=True), CALL_TIMEOUT_S)  # type: ignore[misc]


class _Newest:
    """The newest batch of a query that a restart could do once more; found again as long as the job runs."""

    def __init__(self, admin: JobAdmin, files: BoundedFiles, job: str, query: str) -> None:
        self._admin, self._files, self._job = admin, files, job
        self.query = query
        self.copied: Copy | None = None

    def begin(self) -> bool:
        """Whether the query has committed a batch."""
        return bool(self.look()[1].batches)

    def find(self) -> tuple[CheckpointReader, Closure]:
        """Return the checkpoint, and the files to copy."""
        reader, names = self.look()
        newest = names.batches[-1]
        found, replayed = self._closure(reader, names, newest)
        said = reader.contents({f"offsets/{newest}"})[f"offsets/{newest}"]
        offsets = contents.offsets(said) if said is not None else Offsets({}, 0, {})
        before = reader.run(layouts(names, newest))
        batch = newest if replayed else newest + 1
        read = {source: paths[-_NEWEST_FILES:] for source, paths in newest_files(reader, names).items()}
        self.copied = Copy(self._job, self.query, batch, replayed, before, offsets, read)
        evolving = offsets.settings.get(ENCODING, "") == "avro"  # then Spark's own check is the exact one
        kept = {path: size for path, size in found.files.items() if evolving or not _DESCRIBED.fullmatch(path)}
        return reader, msgspec.structs.replace(found, files=kept)

    def _closure(self, reader: CheckpointReader, names: CheckpointFiles, newest: int) -> tuple[Closure, bool]:
        """Return the closure to start from, and whether the newest batch is done again after it."""
        if newest == 0:
            first = ("metadata", "offsets/0")
            files = {path: size for path, size in names.sizes.items() if path in first or path.startswith("sources/")}
            return Closure(-1, files), True
        if newest - 1 in names.batches:
            again = reader.closures(names, [newest - 1], begun=True)[0]
            if again.restorable:
                return again, True
        return reader.closures(names, [newest])[0], False

    def look(self) -> tuple[CheckpointReader, CheckpointFiles]:
        """Return the checkpoint, and its names."""
        directory = self._admin.directory(self._job)
        reader = CheckpointReader(Tree(self._files, directory.at(f"{SPARK}/{self.query}")))
        return reader, reader.files()
