"""The outputs of a job that may be running, and merges in them: each once, also if the job is claimed meanwhile."""

import contextlib
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

from ha.config.stores import Stores
from ha.leadership.fenced_rename import FencedRename, LeaderFiles
from ha.outputs.folder import OutputFolder
from ha.outputs.merging import Merge, Merging, Rule
from ha.outputs.reading import JournalOutput, JournalReader
from leader.errors import Fenced, LeaderError, NoLeader
from leader.job.admin import JobAdmin
from leader.layout import tree
from store.concat import Concat
from store.errors import Invalid, Refused

EVERY = range(1 << 62)  # all batches
CLAIMS = 3  # claims of the job that a merge survives: the plan goes along with the leader directory


def outputs_of(opened: Stores, job: str, name: str | None = None) -> tuple[JournalReader, list[JournalOutput]]:
    """Return the outputs of a job, or the one of that name, and what reads their journals; ``NoLeader`` without one."""
    admin = JobAdmin(opened.files, None, opened.patience)
    reader = JournalReader(lambda: admin.directory(job))
    outputs = reader.outputs()
    known = sorted({each.name for each in outputs})
    if not known and name is None:
        raise NoLeader(f"Job {job!r} has no output: none of its queries has decided a batch of one.")
    if name is not None and name not in known:
        raise NoLeader(f"Job {job!r} has no output {name!r}: it has {', '.join(known) or 'none'}.")
    return reader, [each for each in outputs if name in (None, each.name)]


def ids_of(reader: JournalReader, found: JournalOutput, batches: range = EVERY) -> Iterator[list[int]]:
    """Return the ids of its batches among these, in lists: the complete ones first, then those that are not."""
    yield from reader.ids(found, batches)
    yield [each for each in found.unfinished if each in batches]


def merged(
    opened: Stores, job: str, name: str | None, rule: Rule, partition: str, web: str, *, dry_run: bool
) -> Iterator[dict[str, object]]:
    """Merge the mergeable outputs of a job, or the one of that name, and yield what was done."""
    # Only `partition` and those below it are merged; all, if it is empty. `web` is the HTTP address of the NameNode;
    # empty if Hadoop's configuration says it.
    reader, outputs = outputs_of(opened, job, name)
    flat = [each for each in outputs if each.flat and each.target]
    if not flat:
        told = f"output {name!r}" if name else "none of its outputs"
        raise LeaderError(f"Job {job!r} has nothing to merge: {told} is mergeable. See ha.spark.Output.")
    for each in flat:
        yield from _merged(opened, reader, job, each, rule, partition, web, dry_run=dry_run)


def _merged(
    opened: Stores,
    reader: JournalReader,
    job: str,
    found: JournalOutput,
    rule: Rule,
    partition: str,
    web: str,
    *,
    dry_run: bool,
) -> Iterator[dict[str, object]]:
    """Merge one output, and begin again in the directory of the next leader if another one claims the job."""
    for claims_left in reversed(range(CLAIMS)):
        newest = max((ids[-1] for ids in ids_of(reader, found) if ids), default=-1)
        newest = min([newest, *(each - 1 for each in found.unfinished)])
        try:
            with _merging(opened, job, found, web) as merging:
                yield from _rows(merging, found, newest, rule, partition, dry_run=dry_run)
        except Fenced:
            if not claims_left:
                raise
        else:
            return


def _rows(
    merging: Merging, found: JournalOutput, newest: int, rule: Rule, partition: str, *, dry_run: bool
) -> Iterator[dict[str, object]]:
    pending, token = merging.pending(), uuid.uuid4().hex[:8]
    now_ms = merging.now_ms()
    if dry_run:
        for each in [*pending, *merging.planned(newest, now_ms, rule, token, partition)]:
            yield _row(found, each, "would be merged")
        return
    merging.sweep()
    for each in pending:
        yield _finished(merging, found, each)
    for planned in merging.planned(newest, now_ms, rule, token, partition):
        merging.begin(planned)
        yield _finished(merging, found, planned)


def _finished(merging: Merging, found: JournalOutput, merge: Merge) -> dict[str, object]:
    try:
        if merging.finish(merge):
            return _row(found, merge, "merged")
        return _row(found, merge, "dropped", "files of it are gone")
    except Refused as error:
        return _row(found, merge, "refused", f"{error}")


def _row(found: JournalOutput, merge: Merge, result: str, text: str = "") -> dict[str, object]:
    return {
        "output": found.name,
        "partition": merge.partition,
        "target": merge.target,
        "batches": [merge.batches[0], merge.newest],
        "files": len(merge.files),
        "bytes": merge.bytes,
        "result": result,
        "text": text,
    }


@contextlib.contextmanager
def _merging(opened: Stores, job: str, found: JournalOutput, web: str) -> Iterator[Merging]:
    admin = JobAdmin(opened.files, None, opened.patience)
    leader = admin.call("find", lambda files: tree.find(files, job))
    directory = opened.directory_uri(job, leader)
    home = LeaderFiles(job, leader.epoch, f"{leader.session_id}", directory, opened.open)
    parts = urlsplit(directory)
    with contextlib.ExitStack() as stack:
        renames = FencedRename(home, f"{parts.scheme}://{parts.netloc}{found.target}")
        stack.callback(renames.close)
        try:
            concat = stack.enter_context(Concat(renames.root, address=web, ca=opened.settings.stores.webhdfs_ca))
        except Invalid as error:
            raise LeaderError(f"{error}") from error
        yield Merging(OutputFolder(renames, f"{renames.inside}/{found.folder}", found.name), concat)
