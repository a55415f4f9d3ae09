"""``ha output list``, ``begin-anew`` and ``merge``: how far the outputs of a job have come, whose batches they take."""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from ha.cli.context import Context, command, consent
from ha.cli.options import Seconds, flag_option, printable, value_option, yes_option
from ha.outputs.job_outputs import EVERY, ids_of, merged, outputs_of
from ha.outputs.ledger import Gap
from ha.outputs.lines import FOLLOW, NO_QUERY, Lines
from ha.outputs.merging import MOST_FILES, Rule
from ha.outputs.reading import BatchCondition, JournalBatch, JournalOutput, JournalReader
from ha.spark.stored.ledger import Ledger
from ha.views.leases import steady
from leader.layout.names import OUT
from store.bounded import BoundedFiles


def _range(_: click.Context, __: click.Parameter, value: str | None) -> range | None:
    """Read a range of batches; both ends belong to it."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,18})?(-)?(\d{1,18})?", value, re.ASCII)
    if found is None or not (found[1] or found[3]) or (found[1] and found[3] and not found[2]):
        raise click.BadParameter(f"{value!r} is not a range of batches, such as 7, 7-9, 7- or -9.")
    first = int(found[1] or 0)
    last = int(found[3]) if found[3] else EVERY.stop - 1 if found[2] else first
    if last < first:
        raise click.BadParameter(f"{value!r} ends before it begins.")
    return range(first, last + 1)


batches_option = value_option(
    "--batches", str, "A-B", "Only these batches: 7, 7-9, 7- or -9.  [default: all]", callback=_range
)


@command("list")
@batches_option
def list_outputs(context: Context, job: str, name: str | None, batches: range | None) -> None:
    """Show the outputs of JOB, how far each has come and its gaps; with --batches what each of these consists of.

    It compares the names of batches with the commits of their query, and says of a batch that is not complete if files
    of it are lost; `ha output verify` looks into each batch.
    """
    reader, outputs = outputs_of(context.stores, job, name)
    if batches is not None:
        rows = (row for each in outputs for ids in ids_of(reader, each, batches) for row in reader.listed(each, ids))
        print_batches(rows, context.as_json)
        return
    found = [
        {**_summary(reader, each), "lost": _lost(context, job, reader, each), "gaps": _gaps(context, job, each)}
        for each in outputs
    ]
    context.show(found, chain.from_iterable(map(_progress, outputs, found)))


def of_ledger(context: Context, job: str, ask: Callable[[Ledger], list[Gap]]) -> list[Gap]:
    """Return the gaps for which the ledger of a job is asked."""
    return steady(lambda: ask(Ledger(context.admin.directory(job))))


def _gaps(context: Context, job: str, found: JournalOutput) -> list[str]:
    home = found.folder.removeprefix(f"{OUT}/")
    gaps = of_ledger(context, job, lambda books: books.of(home, Lines(books.names(found.folder))))
    return [gap.why for gap in gaps]


def _lost(context: Context, job: str, reader: JournalReader, found: JournalOutput) -> list[int]:
    """Return the batches that cannot become complete."""
    if not found.unfinished:
        return []
    with target_of(context, job, found) as target:
        rows = reader.verified(found, found.unfinished, target)
        return [row.batch for row in rows if row.condition in (BatchCondition.LOST, BatchCondition.UNKNOWN)]


def _progress(each: JournalOutput, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield how far an output has come, and its gaps."""
    if each.regions:
        yield from _regions(each)
        return
    oldest, newest = found["oldest"], found["newest"]
    kept = "no batch is complete" if newest is None else f"complete up to batch {newest}, records from {oldest}"
    lost = dict.fromkeys(found["lost"], ", and cannot be: files of it are lost")
    rest = "".join(f"; batch {batch} is not complete{lost.get(batch, '')}" for batch in each.unfinished)
    yield f"{each.name}  {printable(each.place or each.target) or '?'}  {kept}{of_query(each)}{rest}"
    yield from (f"  gap: {printable(why)}" for why in found["gaps"])


@command("begin-anew")
@yes_option
def begin_anew(context: Context, job: str, name: str) -> None:
    """Let another query continue OUTPUT of JOB, or its query with another checkpoint.

    The next batch of any other query gets the number after the newest one. What that query reads again, or does again,
    is there twice then. It is said once: later ones are refused as before. The job may be running.

    It asks, for nothing undoes it.
    """
    directory = context.admin.directory(job)
    for each in outputs_of(context.stores, job, name)[1]:
        lines = Lines(each.lines)
        if lines.current is None:
            raise click.UsageError(f"Output {name!r} has no batch of any query, so any query may begin in it.")
        consent(yes=context.yes)
        directory.make_folder(f"{each.folder}/{FOLLOW}{lines.tenure}")
        said = {"job": job, "output": name, "after": msgspec.to_builtins(lines.current)}
        context.show(said, f"{name}: after the batches of {lines.current} another query may go on, once")


def of_query(found: JournalOutput) -> str:
    """Return the query whose batches an output has, and how many were done again."""
    current = Lines(found.lines).current
    whose = "" if current is None or current.id == NO_QUERY else f", of {printable(str(current))}"
    again = "" if not found.replayed else f"; {found.replayed} done again, and dropped the second time"
    return f"{whose}{again}"


def _summary(reader: JournalReader, found: JournalOutput) -> dict[str, object]:
    ids = [each for each in reader.ids(found, EVERY) if each]
    return {
        "output": found.name,
        "target": found.place or found.target,
        "oldest": ids[0][0] if ids else None,
        "newest": ids[-1][-1] if ids else None,
        "unfinished": found.unfinished,
        "replayed": found.replayed,
        "lines": found.lines,
    } | _regional(found)


def _regional(found: JournalOutput) -> dict[str, object]:
    if not found.regions:
        return {}
    known = msgspec.to_builtins(found)
    return {"regions": found.regions, "complete_up_to": found.complete_up_to, "behind": known["behind"]}


def _regions(found: JournalOutput) -> Iterator[str]:
    """Yield the progress of all regions, and what each lacks; each is also listed as an output."""
    come = "nothing is complete yet" if found.complete_up_to < 0 else f"complete up to batch {found.complete_up_to}"
    yield f"{found.name}  {printable(found.target) or '?'}  {come} in all {len(found.regions)} regions"
    for each in found.behind:
        tasks = f", tasks {', '.join(each.tasks)}" if each.tasks else ""
        lacks = f"lacks batch {each.checkpoint_id}"
        yield f"  region {each.scope} is behind ({each.state}): {lacks}{tasks}: {printable(each.message)}"


def print_batches(rows: Iterable[JournalBatch], as_json: bool) -> None:
    """Print row after row: there may be many thousands."""
    if not as_json:
        for row in rows:
            given_up = f", {row.accepted} given up" if row.accepted else ""
            counted = "" if row.rows is None else f"{row.rows:,} rows, "
            if row.why:
                click.echo(f"{row.output}  {row.condition}  {printable(row.why)}")
                continue
            size = f"{row.files} files, {counted}{row.bytes:,} bytes in {row.partitions} partitions{given_up}"
            click.echo(f"{row.output}  batch {row.batch}  {row.condition}  {size}")
            for path in row.missing:
                click.echo(f"  {printable(path)} is not there")
            for path in row.surplus:
                click.echo(f"  {printable(path)} was not decided")
        return
    before = "["
    for row in rows:
        click.echo(f"{before}{json.dumps(msgspec.to_builtins(row))}", nl=False)
        before = ",\n"
    click.echo("]" if before != "[" else "[]")


@contextlib.contextmanager
def target_of(context: Context, job: str, found: JournalOutput) -> Iterator[BoundedFiles]:
    """Open the directory in which an output's batches appear; it is in the file system of the job."""
    opened = context.stores
    parts = urlsplit(opened.files.at(job))
    if not found.target or found.place:
        yield opened.files  # nothing is looked for
        return
    with opened.open_root(f"{parts.scheme}://{parts.netloc}{found.target}") as target:
        yield target


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


@command()
@click.option(
    "--older-than", type=Seconds(LONGEST_S), default="1 h", show_default=True, metavar="DURATION",
    help="Only files that were written so long ago. A reader that has listed files and not read them yet fails if they "
    "are merged: choose longer than readers take.",
)  # fmt: skip
@click.option("--partition", default="", help="Only this partition and those below it, such as day=2026-11-23.")
@value_option(
    "--files-each", click.IntRange(2, MOST_FILES), "N", "As many files become one.", name="count", default=100
)
@value_option(
    "--size", Bytes(), "BYTES", "Longest file that is made; files of that length are left alone.", default="128 MiB"
)
@flag_option("--rest", "Also merge folders with fewer than N files.")
@flag_option("--dry-run", "Only say what would be merged.")
@click.option(
    "--web", default="", metavar="HOST:PORT",
    help="HTTP address of the NameNode.  [default: as Hadoop's configuration says]",
)  # fmt: skip
def merge(
    context: Context,
    job: str,
    name: str | None,
    older_than: float,
    partition: str,
    count: int,
    size: int,
    rest: bool,
    dry_run: bool,
    web: str,
) -> None:
    """Make one file of many in the outputs of JOB that are mergeable; JOB may be running, and its readers reading.

    HDFS makes each new file in one step; no row is read or written. A reader that lists a folder sees each row once,
    before and after. Run it every few minutes: the journal knows the newest 10,000 batches.

    If it is interrupted, run it again: it first does what is left.
    """
    done: list[Mapping[str, object]] = []
    rule = Rule(count, size, older_than, rest)
    for row in merged(context.stores, job, name, rule, partition, web, dry_run=dry_run):
        done.append(row)
        context.tell(_line(row))
    context.show(done, () if done else f"{job}: nothing is to be merged now")
    if any(row["result"] == "refused" for row in done):
        click.get_current_context().exit(1)


def _line(row: Mapping[str, object]) -> str:
    where = f"{row['partition']}/{row['target']}".lstrip("/")
    size = f"{row['files']} files, {row['bytes']:,} bytes"
    why = f": {row['text']}" if row["text"] else ""
    return f"{row['output']}  {where}  {row['result']}  {size}{why}"
