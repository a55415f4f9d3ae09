"""``ha checkpoint sweep``: moves files that no retained batch can refer to into the trash, and back."""

import shlex
from collections.abc import Iterator
from typing import Any

import click

from ha.cli.checkpoints import checkpoints
from ha.cli.context import Context, command, needs, refusals_as_errors
from ha.cli.options import lead_option, printable
from ha.cli.progress import progress
from ha.verbs.table import VERBS


@command()
@click.argument("target", metavar="JOB|URI")
@click.option("--dry-run", is_flag=True, help="Only say what would be moved.")
@click.option("--undo", is_flag=True, help="Put back what the last sweep has moved.")
@click.option(
    "--remove",
    "removed",
    multiple=True,
    metavar="QUERY",
    help="Also move the whole checkpoint of a query that JOB has dropped; may be repeated. No process may lead JOB.",
)
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="DAYS",
    help="At a URI: only what was written this long before the newest file. With 0 no query may run there.",
)
@click.option(
    "--alone",
    is_flag=True,
    help="Lead JOB meanwhile even if its last leader has not given the lease back: nothing of JOB runs any more.",
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
    context.show({"target": target, "dry_run": context.dry_run, **said}, _lines(target, context.dry_run, said))


def _lines(target: str, dry_run: bool, said: dict[str, Any]) -> Iterator[str]:
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
