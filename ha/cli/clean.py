"""Leftovers: ``ha job clean`` and ``ha trash`` of a job that has ended, and ``ha checkpoint sweep`` of checkpoints."""

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import click

from ha.cli.context import Context, command, consent, needs, refusals_as_errors
from ha.cli.inspect import checkpoints
from ha.cli.options import flag_option, lead_option, printable, value_option, yes_option
from ha.cli.progress import progress
from ha.spark.rewind.operated import led
from ha.spark.stored.locations import check_query
from ha.verbs.table import VERBS
from ha.views.ages import at_time
from ha.views.jobs import summary
from ha.views.remarks import is_left, remarks
from leader.errors import LeaderError
from leader.job.cleanup import Cleanup, Trashed
from leader.layout.names import SPARK
from store.errors import NotFound

REMOVE = "ha checkpoint sweep {} --remove"  # what undoes that a query got a checkpoint, with the query behind it


@command()
def clean(context: Context, job: str) -> None:
    """Move the leftovers of JOB into its trash: graph, blobs and Spark's checkpoints. JOB must have ended for good."""
    if is_left(found := summary(context.admin, job, context.leases)):
        raise LeaderError(
            f"Job {job!r} is {found.state}, and {next(remarks(found))}. `ha job cancel {job}` ends it for good; then "
            "it can be cleaned up."
        )
    with refusals_as_errors():
        name = Cleanup(context.admin.directory(job)).clean()
    undo = f"`ha trash restore {job}` undoes it, `ha trash empty {job}` makes it final"
    context.show({"job": job, "trash": name}, f"{job}: cleaned up ({name}); {undo}")


@command("list")
def list_trash(context: Context, job: str) -> None:
    """Print the trash of JOB, oldest first: time, name, folders, and whether it can be restored."""
    with refusals_as_errors(changes=False):
        found = Cleanup(context.admin.directory(job)).trash()
    rows = [
        {"at": at_time(each.at_ms), "name": each.name, "folders": each.folders, "restorable": each.restorable}
        for each in found
    ]
    if not rows:
        click.echo(f"{job}: its trash is empty", err=True)
    context.show(rows, _trash(found))


def _trash(found: Iterable[Trashed]) -> Iterator[str]:
    for each in found:
        restorable = "" if each.restorable else "  (cannot be restored: the job has been run again since)"
        yield f"{at_time(each.at_ms)}  {each.name}  {' '.join(each.folders)}{restorable}"


def trashed(context: Context, job: str) -> set[tuple[str, str]]:
    """Return the checkpoints in the trash of a job: the name of each there, and its query's."""
    found = [(each.name, path) for each in Cleanup(context.admin.directory(job)).trash() for path in each.folders]
    return {(name, path.removeprefix(f"{SPARK}/")) for name, path in found if path.startswith(f"{SPARK}/")}


@command()
@click.option("--query", help="Restore the checkpoint of QUERY that was replaced last. No process may lead JOB.")
@lead_option
def restore(context: Context, job: str, query: str | None, timeout: float) -> None:
    """Undo the last cleanup of JOB. That is not possible once JOB has been run again."""
    undo = f"ha job clean {job}"
    with refusals_as_errors():
        if query is None:
            name = Cleanup(context.admin.directory(job)).restore()
        else:
            check_query(query)
            if query not in (there := {each for _, each in trashed(context, job)}):
                it_has = ", ".join(sorted(there)) or "none"
                raise NotFound(f"The trash of job {job!r} holds no checkpoint of query {query!r}: it holds {it_has}.")
            with led(context.stores, job, timeout) as leadership:
                undo = f"ha trash restore {job} --query" if leadership.queries.has(query) else REMOVE.format(job)
                undo, name = f"{undo} {shlex.quote(query)}", leadership.queries.restore(query)
    context.show({"job": job, "restored": name}, f"{job}: restored ({name}); `{undo}` undoes it")


@command()
@click.option(
    "--older-than",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DAYS",
    help="Only what has been there so long, by the clock of the store.  [default: everything]",
)
@yes_option
def empty(context: Context, job: str, older_than: float | None, yes: bool) -> None:
    """Delete everything in the trash of JOB for good, after a question. Nothing brings it back."""
    with refusals_as_errors():
        if found := Cleanup(context.admin.directory(job)).trash():
            for line in _trash(found):
                context.tell(line)
            old = f", if it is older than {older_than:g} days" if older_than else ""
            context.tell(f"{job}: this is deleted for good{old}")
            consent(yes=yes)
        names = Cleanup(context.admin.directory(job)).empty(round((older_than or 0) * 86_400_000))
    context.show({"job": job, "deleted": names}, f"{job}: deleted {', '.join(names) or 'nothing'}")


@command()
@flag_option("--dry-run", "Only say what would be moved.")
@flag_option("--undo", "Put back what the last sweep has moved.")
@click.option(
    "--remove",
    "removed",
    multiple=True,
    metavar="QUERY",
    help="Also move the whole checkpoint of a query that JOB has dropped; may be repeated. No process may lead JOB.",
)
@value_option(
    "--older-than",
    click.FloatRange(min=0),
    "DAYS",
    "At a URI: only what was written this long before the newest file. With 0 no query may run there.",
    default=1.0,
)
@flag_option(
    "--alone", "Lead JOB meanwhile even if its last leader has not given the lease back: nothing of JOB runs any more."
)
@lead_option
def sweep(context: Context, target: str, undo: bool, removed: tuple[str, ...], older_than: float, alone: bool) -> None:
    """Move what no retained batch can refer to into the trash: of the queries of JOB, or of the checkpoint at URI.

    That is: temporary files, versions of state that were never committed, and tables that no snapshot names; of JOB
    also unfinished copies, and directories of fenced leaders. JOB may be running: then only what was written before
    its leader began. If its last leader has given the lease back, this command leads JOB meanwhile, and moves all.
    """
    needs("Sweeping", "pyarrow")
    from ha.spark.checkpoint_tools.swept import JobToSweep, sweep_outside  # noqa: PLC0415  # loads pyarrow

    opened = context.stores
    with (
        refusals_as_errors(changes=not context.dry_run),
        progress(context.as_json, "moving files", of_bytes=False) as told,
    ):
        if "://" in target:
            if not undo:
                with checkpoints(context, target, None):  # refuses what is no checkpoint
                    pass
            if removed:
                raise click.UsageError("--remove goes with a job: at a URI there is one checkpoint.")
            said = sweep_outside(opened, target, dry_run=context.dry_run, undo=undo, days=older_than, told=told)
        else:
            job = JobToSweep(opened, target, dry_run=context.dry_run, alone=alone, timeout=context.timeout, told=told)
            said = job.undo() if undo else job.sweep(removed)
    if said.get("queries") == []:
        click.echo(f"{target}: there is no checkpoint of a query", err=True)
    context.show({"target": target, "dry_run": context.dry_run, **said}, _swept(target, context.dry_run, said))


def _swept(target: str, dry_run: bool, said: dict[str, Any]) -> Iterator[str]:
    if "undone" in said:
        for path in said["taken"]:
            yield f"{printable(path)} stays in the trash: its place is taken, gone or not known"
        again = f"`ha checkpoint sweep {shlex.quote(target)}` moves them again"
        yield f"{target}: {said['back']} entries are back ({said['undone']}); {again}"
        return
    for each in said["queries"]:
        name = printable(each["query"])
        if each["refused"]:
            yield f"{name}: nothing is swept. {each['refused']}"
            continue
        kinds = ", ".join(f"{each[kind]} {kind}" for kind in ("temporary", "version", "table") if each[kind])
        yield f"{name}: {each['files']} files, {each['bytes']:,} bytes{': ' + kinds if kinds else ''}"
        if each["waiting"]:
            yield (
                f"  {each['waiting']} more, {each['waiting_bytes']:,} bytes, may be younger than the present writer: "
                "sweep again after the next change of the leader, or while nothing runs"
            )
    for what, sentence in (
        ("copies", "an unfinished copy for query {query}"),
        ("revived", "directory {query}, which a fenced driver has brought back to life"),
        ("removed", "the whole checkpoint of query {query}; `ha trash restore {job} --query {quoted}` brings it back"),
    ):
        for each in said.get(what, ()):
            yield "and " + sentence.format(query=printable(each), job=target, quoted=shlex.quote(each))
    if dry_run:
        yield "nothing was moved (--dry-run)"
    elif said["trash"]:
        yield f"moved into the trash ({said['trash']}); {VERBS['sweep'].undo.format(job=shlex.quote(target))}"
