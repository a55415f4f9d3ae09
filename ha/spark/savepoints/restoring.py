"""Restoring: puts a job back to a savepoint. It is copied beside the job's checkpoints, decided for, and moved in.

    <leader directory>/restoring/<place>/tree/    the copy, as it grows; the job may run
    <leader directory>/restoring/ready/tree/      one rename: the job's next start is from it
    <leader directory>/restoring/from=<place>     the job has been started from there; it is not put back a second time
    <leader directory>/trash/<trash>/...          each former checkpoint; and the decided batches of outputs, see below

The queries must not run between the second line and the last. A job that goes back to an older batch does the batches
after it once more, with other rows perhaps. So :class:`ha.spark.Output` must not take them for those that it knows.
"""

import hashlib
import uuid
from collections.abc import Callable
from functools import partial

import msgspec

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import fault
from ha.config.stores import Stores
from ha.hook.query_rules import NAMELESS
from ha.spark.checkpoint_tools.copying import WORKERS, CopyProgress, Staging
from ha.spark.savepoints.places import MANIFEST, Manifest, decoded, opened
from ha.spark.stored.commit_log import kept, newest_batch
from ha.spark.stored.locations import relocate
from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.layout.names import OUT, RESTORING, SPARK, TRASH
from store.errors import Conflict, Invalid, NotFound

READY = "ready"
FROM = "from="

Told = Callable[[str], object]


def place_of(where: str) -> str:
    """Return the name under which a job remembers where it was started from."""
    return hashlib.sha256(where.rstrip("/").encode()).hexdigest()[:16]


def restored(directory: FencedDirectory, where: str) -> bool:
    """Whether the job has been started from there before."""
    return any(entry.name == f"{FROM}{place_of(where)}" for entry in directory.list(RESTORING))


def stage(
    stores: Stores,
    directory: FencedDirectory,
    where: str,
    may_go_on: Callable[[], object],
    told: Told = bool,
    *,
    discard_newer: bool = False,
) -> Manifest:
    """Copy a savepoint, of a URI or a name, beside the job's checkpoints, which are not touched. The job may run."""
    # `may_go_on` is called before each file; an error from it ends the copy. `told` gets the progress, a sentence, from
    # any thread. Raises `Conflict` if the job has newer checkpoints, or others, and may not discard them (into its
    # trash).

    def tell(progress: CopyProgress) -> None:
        told(f"It has copied {progress.files_done} of {progress.files} files of the savepoint.")

    with opened(stores, directory, where) as place, stores.open(stores.files.uri, workers=WORKERS) as inside:
        manifest = place.read()
        if not discard_newer and (newer := newer_than(directory, manifest)):
            raise Conflict(
                f"Job {directory.job!r} has what the savepoint has not: {newer}. Add --discard-newer to put that into "
                "its trash."
            )
        wanted = kept(place.tree.listing())
        for each in manifest.queries:
            found = sum(path.startswith(f"{SPARK}/{each.name}/") for path in wanted)
            if found < each.files:
                raise Invalid(f"{place.uri} is damaged: query {each.name} has {found} files, and had {each.files}.")
            tree = Tree(place.files, f"{place.path}/{SPARK}/{each.name}")
            if bad := fault(partial(CheckpointReader, tree)):
                raise Invalid(f"{place.uri} is damaged: query {each.name}, {bad.missing}: {bad.reason}")
        directory.make_folder(RESTORING)
        for entry in directory.list(RESTORING):
            if entry.name not in (READY, place_of(where)) and not entry.name.startswith(FROM):
                directory.delete(f"{RESTORING}/{entry.name}")  # an abandoned copy of another savepoint
        staging = Staging(inside, directory.at(f"{RESTORING}/{place_of(where)}"), tell)
        try:
            staging.fill(place.tree, wanted, may_go_on)
        except NotFound:
            directory.check()  # raises Fenced if another leader has taken over
            raise
    return manifest


def decide(directory: FencedDirectory, where: str) -> None:
    """Have the job start from the savepoint that was staged: the next :func:`complete` of any leader does so."""
    names = {entry.name for entry in directory.list(RESTORING)}
    if READY not in names:
        directory.rename(f"{RESTORING}/{place_of(where)}", f"{RESTORING}/{READY}")
    directory.make_folder(f"{RESTORING}/{FROM}{place_of(where)}")


def complete(directory: FencedDirectory, location: Callable[[str], str]) -> Manifest | None:
    """Move in the savepoint that was decided for, and return its manifest; None if there is none. No query may run."""
    # Repeat it after a crash. `location` returns the URI of a query's checkpoint, by its name.
    ready = f"{RESTORING}/{READY}"
    if not any(entry.name == READY for entry in directory.list(RESTORING)):
        return None
    manifest = decoded(directory.read(f"{ready}/tree/{MANIFEST}"), "the staged savepoint")
    if newer_than(directory, manifest):
        discard_outputs(directory)
    queries = QueryCheckpoints(directory)
    staged = {entry.name for entry in directory.list(f"{ready}/tree/{SPARK}")}
    saved = {each.name for each in manifest.queries}
    for entry in directory.list(SPARK):
        if entry.name in staged or entry.name not in saved:
            queries.discard(entry.name)
    for query in sorted(staged):
        queries.show(f"{ready}/tree/{SPARK}/{query}", query)
    for query in sorted(saved):
        relocate(directory, f"{SPARK}/{query}", location(query))
    directory.delete(ready)
    return manifest


def newer_than(directory: FencedDirectory, manifest: Manifest) -> str:
    """Return what the job has done that is not in the savepoint, in words; empty if that is nothing."""
    saved = {each.name: each for each in manifest.queries}
    for entry in directory.list(SPARK):
        query = entry.name
        if NAMELESS.fullmatch(query):
            continue
        newest = newest_batch(each.name for each in directory.list(f"{SPARK}/{query}/commits"))
        if newest is None:
            continue
        if query not in saved:
            return f"query {query}, which has come to batch {newest}"
        if _id(directory, query) != saved[query].id:
            return f"another query {query}, which has come to batch {newest}"
        if newest > saved[query].batch:
            return f"query {query} has come to batch {newest}, and the savepoint has batch {saved[query].batch}"
    return ""


def _id(directory: FencedDirectory, query: str) -> str:
    try:
        return str(msgspec.json.decode(directory.read(f"{SPARK}/{query}/metadata")).get("id", ""))
    except (NotFound, msgspec.DecodeError, AttributeError):
        return ""


def discard_outputs(directory: FencedDirectory) -> None:
    """Move the notes of published batches into the trash: a number then says nothing of what was published."""
    if not any(entry.name == OUT for entry in directory.list()):
        return
    name = uuid.uuid4().hex[:8]
    directory.make_folder(TRASH)
    directory.make_folder(f"{TRASH}/{name}")
    directory.commit(OUT, f"{TRASH}/{name}/{OUT}")
