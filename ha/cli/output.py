"""``ha output``: what a job's outputs have decided, whether it is there, and what can be done if it is not."""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ha.cli.adopt_export import lead_option, led, refusals_as_errors
from ha.cli.options import json_option, printable, stores
from ha.cli.output_journals import EVERY, ids_of, journals
from ha.cli.output_merge import merge
from ha.config.stores import Stores
from ha.leadership.fenced_rename import FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs.moving import Moved, Moving
from ha.outputs.partitions import Partitions
from ha.outputs.reading import Condition, JournalBatch, JournalOutput, JournalReader
from leader.errors import OutputLost
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


_batches = click.option(
    "--batches", callback=_range, metavar="A-B", help="Only these batches: 7, 7-9, 7- or -9.  [default: all]"
)


@click.group()
def output() -> None:
    """List, verify, repair or merge what a job publishes with ha.spark.Output."""


@output.command("list")
@click.argument("job")
@click.argument("name", metavar="[OUTPUT]", required=False)
@_batches
@json_option
@stores
def list_outputs(
    job: str, name: str | None, batches: range | None, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Show the outputs of JOB and how far each has come; with --batches what each of these consists of."""
    with journals(job, name, files, zookeeper) as (_, reader, outputs):
        if batches is not None:
            rows = (
                row for each in outputs for ids in ids_of(reader, each, batches) for row in reader.listed(each, ids)
            )
            _print(rows, as_json)
            return
        if as_json:
            click.echo(json.dumps([_summary(reader, each) for each in outputs]))
            return
        for each in outputs:
            if each.regions:
                _say_regions(each)
                continue
            found = _summary(reader, each)
            oldest, newest = found["oldest"], found["newest"]
            kept = "no batch is complete" if newest is None else f"complete up to batch {newest}, records from {oldest}"
            rest = "".join(f"; batch {batch} is not complete" for batch in each.unfinished)
            click.echo(f"{each.name}  {printable(each.target) or '?'}  {kept}{rest}")


@output.command()
@click.argument("job")
@click.argument("name", metavar="[OUTPUT]", required=False)
@_batches
@json_option
@stores
def verify(
    job: str, name: str | None, batches: range | None, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Look for every file that the outputs of JOB have decided; the job may be running.

    Exit with 1 if a file is missing, or has another length. A batch that is complete has had all of its files in their
    places: if they are not there, they are gone since, and perhaps their readers have taken them away.
    """
    bad = 0

    def rows() -> Iterator[JournalBatch]:
        nonlocal bad
        with journals(job, name, files, zookeeper) as (opened, reader, outputs):
            for each in outputs:
                counts: Counter[str] = Counter()
                for row in _verified(opened, job, reader, each, batches or EVERY):
                    counts[row.condition] += 1
                    bad += bool(row.missing) or row.condition == Condition.UNKNOWN
                    if as_json or row.condition != Condition.COMPLETE or row.accepted:
                        yield row
                if not as_json:
                    told = ", ".join(f"{count} {condition}" for condition, count in sorted(counts.items()))
                    click.echo(f"{each.name}: {told or 'no batch is decided'}")

    _print(rows(), as_json)
    if bad:
        click.get_current_context().exit(1)


@output.command()
@click.argument("job")
@click.argument("name", metavar="[OUTPUT]", required=False)
@click.option("--accept-loss", is_flag=True, help="Complete a batch without the files that are gone; they are noted.")
@click.option(
    "--write-again",
    is_flag=True,
    help="Undo the decision of a batch of which nothing is in its place, if files are gone.",
)
@lead_option
@json_option
@stores
def repair(
    job: str,
    name: str | None,
    accept_loss: bool,
    write_again: bool,
    timeout: float,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Complete the batches of JOB that were decided and are not complete. No process may contend for JOB.

    Nothing of a batch is moved if files of it are gone, unless --accept-loss says so: then exit with 1. First restore
    them, from a snapshot or the trash of the file system.
    """
    if accept_loss and write_again:
        raise click.UsageError("Choose one of --accept-loss and --write-again.")
    with journals(job, name, files, zookeeper) as (_, _, outputs):
        broken = [each for each in outputs if each.unfinished and each.target]
    done: list[dict[str, object]] = []
    if broken:
        with refusals_as_errors(), led(job, timeout, files, zookeeper) as leadership:
            for each in broken:
                done.extend(_repaired(leadership, each, accept_loss=accept_loss, write_again=write_again))
    if as_json:
        click.echo(json.dumps(done))
    else:
        for row in done:
            click.echo(f"{row['output']}: batch {row['batch']} is {row['result']}: {row['text']}")
        if not done:
            click.echo(f"{job}: every batch that was decided is complete")
    if any(row["result"] == Condition.LOST for row in done):
        click.get_current_context().exit(1)


output.add_command(merge)


def _repaired(
    leadership: Leadership, found: JournalOutput, *, accept_loss: bool, write_again: bool
) -> Iterator[dict[str, object]]:
    parts = urlsplit(leadership.directory)
    with contextlib.closing(FencedRename(leadership, f"{parts.scheme}://{parts.netloc}{found.target}")) as renames:
        home = f"{renames.inside}/{found.folder}"
        partitions = Partitions(renames, home)
        kept = partitions.load(make=False)
        moving = Moving(renames, home, found.name, partitions.note if kept else None)
        for batch in found.unfinished:
            result, text = _repair(moving, batch, accept_loss=accept_loss, write_again=write_again)
            yield {"output": found.name, "batch": batch, "result": result, "text": text}


def _repair(moving: Moving, batch: int, *, accept_loss: bool, write_again: bool) -> tuple[str, str]:
    try:
        return "complete", _said(moving.finish(batch))
    except OutputLost as lost:
        if write_again:
            moving.withdraw(batch)
            return "undecided", "nothing of it was in its place, and the query writes it again when the job starts"
        if not accept_loss:
            return Condition.LOST, f"{lost}"
        if not lost.files:
            moving.record_anew(batch)
        return "complete", _said(moving.finish(batch, accept_loss=True))


def _said(moved: Moved) -> str:
    given_up = f", {moved.failed} given up" if moved.failed else ""
    return f"{moved.created} files: {moved.renamed} moved, {moved.ignored} in place before{given_up}"


def _verified(
    opened: Stores, job: str, reader: JournalReader, found: JournalOutput, batches: range
) -> Iterator[JournalBatch]:
    total = sum(len(ids) for ids in ids_of(reader, found, batches))
    with _target(opened, job, found) as target, _shown(found, total) as told:
        for ids in ids_of(reader, found, batches):
            for row in reader.verified(found, ids, target):
                told()
                yield row


@contextlib.contextmanager
def _target(opened: Stores, job: str, found: JournalOutput) -> Iterator[BoundedFiles]:
    """Open the directory in which an output's batches appear; it is in the file system of the job."""
    parts = urlsplit(opened.files.at(job))
    if not found.target:
        yield opened.files  # it has no records, so nothing is looked for
        return
    with opened.open(f"{parts.scheme}://{parts.netloc}{found.target}") as target:
        yield target


def _summary(reader: JournalReader, found: JournalOutput) -> dict[str, object]:
    ids = [each for each in reader.ids(found, EVERY) if each]
    return {
        "output": found.name,
        "target": found.target,
        "oldest": ids[0][0] if ids else None,
        "newest": ids[-1][-1] if ids else None,
        "unfinished": found.unfinished,
    } | _regional(found)


def _regional(found: JournalOutput) -> dict[str, object]:
    if not found.regions:
        return {}
    known = msgspec.to_builtins(found)
    return {"regions": found.regions, "complete_up_to": found.complete_up_to, "behind": known["behind"]}


def _say_regions(found: JournalOutput) -> None:
    """Say how far all regions have come, and which of them lacks what; each is listed as an output, too."""
    come = "nothing is complete yet" if found.complete_up_to < 0 else f"complete up to batch {found.complete_up_to}"
    click.echo(f"{found.name}  {printable(found.target) or '?'}  {come} in all {len(found.regions)} regions")
    for each in found.behind:
        tasks = f", tasks {', '.join(each.tasks)}" if each.tasks else ""
        lacks = f"lacks batch {each.checkpoint_id}"
        click.echo(f"  region {each.scope} is behind ({each.state}): {lacks}{tasks}: {printable(each.message)}")


def _print(rows: Iterable[JournalBatch], as_json: bool) -> None:
    """Print row after row: there may be many thousands."""
    if not as_json:
        for row in rows:
            given_up = f", {row.accepted} given up" if row.accepted else ""
            counted = "" if row.rows is None else f"{row.rows:,} rows, "
            size = f"{row.files} files, {counted}{row.bytes:,} bytes in {row.partitions} partitions{given_up}"
            click.echo(f"{row.output}  batch {row.batch}  {row.condition}  {size}")
            for path in row.missing:
                click.echo(f"  {printable(path)} is not there")
        return
    before = "["
    for row in rows:
        click.echo(f"{before}{json.dumps(msgspec.to_builtins(row))}", nl=False)
        before = ",\n"
    click.echo("]" if before != "[" else "[]")


@contextlib.contextmanager
def _shown(found: JournalOutput, total: int) -> Iterator[Callable[[], object]]:
    """Show a progress bar if standard error is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(found.name, total=total)
        yield lambda: bar.advance(task)
