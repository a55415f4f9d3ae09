"""``ha output merge``: makes one file of many in the outputs of a job, which may be running."""

import contextlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import click

from ha.checkpoints.trees import Tree
from ha.cli.options import Seconds, json_option, stores
from ha.cli.output_journals import EVERY, ids_of, journals
from ha.config.stores import Stores
from ha.leadership.fenced_rename import FencedRename, LeaderFiles
from ha.outputs.footers import footed
from ha.outputs.merge_plan import MOST_FILES, Merge, Rule
from ha.outputs.merging import Merging
from ha.outputs.reading import JournalOutput, JournalReader
from leader.errors import Fenced, LeaderError
from leader.job.admin import JobAdmin
from leader.layout import tree
from store.concat import Concat
from store.errors import Invalid, Refused

CLAIMS = 3
"""Claims of the job that a merge survives: the plan goes along with the leader directory."""

LONGEST_S = 10 * 366 * 86_400


class Bytes(click.ParamType[int]):
    """A number of bytes, such as ``1000000``, ``64 MiB`` or ``1 GB``."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([1-9][0-9]{0,17}) ?(?:([KMGT])(i?)B)?", value, re.ASCII)
        if found is None:
            self.fail(f"{value!r} is no size, such as 64 MiB.", param, ctx)
        power = " KMGT".index(found[2] or " ")
        return int(found[1]) * int(1024**power if found[3] else 1000**power)


@click.command()
@click.argument("job")
@click.argument("name", metavar="[OUTPUT]", required=False)
@click.option(
    "--older-than", type=Seconds(LONGEST_S), default="1 h", show_default=True, metavar="DURATION",
    help="Only files that were written so long ago. A reader that has listed files and not read them yet fails if they "
    "are merged: choose longer than readers take.",
)  # fmt: skip
@click.option("--partition", default="", help="Only this partition and those below it, such as day=2026-11-23.")
@click.option(
    "--files-each", "count", type=click.IntRange(2, MOST_FILES), default=100, show_default=True, metavar="N",
    help="As many files become one.",
)  # fmt: skip
@click.option(
    "--size", type=Bytes(), default="128 MiB", show_default=True, metavar="BYTES",
    help="Longest file that is made; files of that length are left alone.",
)  # fmt: skip
@click.option("--rest", is_flag=True, help="Merge those as well of which there are fewer than N.")
@click.option("--dry-run", is_flag=True, help="Only say what would be merged.")
@click.option(
    "--web", default="", metavar="HOST:PORT",
    help="HTTP address of the NameNode.  [default: as Hadoop's configuration says]",
)  # fmt: skip
@json_option
@stores
def merge(
    job: str,
    name: str | None,
    older_than: float,
    partition: str,
    count: int,
    size: int,
    rest: bool,
    dry_run: bool,
    web: str,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Make one file of many in the outputs of JOB that are mergeable; JOB may be running, and its readers reading.

    HDFS does that in one step for each new file, and no row is read or written; files of Parquet and ORC get a new
    footer. Whoever lists a folder sees each row once, before and after. Run it every few minutes: the journal knows the
    newest 10,000 batches.

    If it is interrupted, run it again: it first does what is left.
    """
    rule = Rule(count, size, older_than, rest)
    done: list[dict[str, object]] = []
    with journals(job, name, files, zookeeper) as (opened, reader, outputs):
        flat = [each for each in outputs if each.flat and each.target]
        if not flat:
            told = f"output {name!r}" if name else "none of its outputs"
            raise LeaderError(f"Job {job!r} has nothing to merge: {told} is mergeable. See ha.spark.Output.")
        for each in flat:
            for row in _merged(opened, reader, job, each, rule, partition, web, dry_run=dry_run):
                done.append(row)
                if not as_json:
                    _tell(row)
    if as_json:
        click.echo(json.dumps(done))
    elif not done:
        click.echo(f"{job}: nothing is to be merged now")
    if any(row["result"] == "refused" for row in done):
        click.get_current_context().exit(1)


def _tell(row: dict[str, object]) -> None:
    where = f"{row['partition']}/{row['target']}".lstrip("/")
    size = f"{row['files']} files, {row['bytes']:,} bytes"
    why = f": {row['text']}" if row["text"] else ""
    click.echo(f"{row['output']}  {where}  {row['result']}  {size}{why}")


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
        newest = max((ids[-1] for ids in ids_of(reader, found, EVERY) if ids), default=-1)
        newest = min([newest, *(each - 1 for each in found.unfinished)])
        try:
            with _merging(opened, job, found, web) as (merging, output):
                yield from _rows(merging, output, found, newest, rule, partition, dry_run=dry_run)
        except Fenced:
            if not claims_left:
                raise
        else:
            return


def _rows(
    merging: Merging, output: Tree, found: JournalOutput, newest: int, rule: Rule, partition: str, *, dry_run: bool
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
        for part in footed(output.tail, planned):
            if part.problem:
                yield _row(found, part.merge, "left alone", part.problem)
                continue
            merging.begin(part.merge, part.footer)
            yield _finished(merging, found, part.merge)


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
def _merging(opened: Stores, job: str, found: JournalOutput, web: str) -> Iterator[tuple[Merging, Tree]]:
    admin = JobAdmin(opened.files, None, opened.timing.call_timeout)
    leader = admin.call("find", lambda files: tree.find(files, job))
    directory = opened.directory_uri(job, leader)
    home = LeaderFiles(job, leader.epoch, f"{leader.session_id}", directory, opened.open)
    parts = urlsplit(directory)
    with contextlib.ExitStack() as stack:
        target = f"{parts.scheme}://{parts.netloc}{found.target}"
        renames = FencedRename(home, target)
        stack.callback(renames.close)
        output = Tree(opened.open(target))
        stack.callback(output.files.close)
        try:
            concat = stack.enter_context(Concat(renames.root, address=web, ca=opened.settings.webhdfs_ca))
        except Invalid as error:
            raise LeaderError(f"{error}") from error
        yield Merging(renames, f"{renames.inside}/{found.folder}", concat), output
