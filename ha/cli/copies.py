"""``ha checkpoint import`` and ``ha checkpoint export``: Spark's checkpoints, copied into a job and out of it."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from ha.checkpoints.inputs import bound
from ha.checkpoints.layouts import Layout, Layouts
from ha.checkpoints.renumbering import Doubt, match
from ha.cli.clean import REMOVE
from ha.cli.context import Context, command, needs, refusals_as_errors
from ha.cli.options import flag_option, lead_option, printable, value_option
from ha.cli.progress import copying
from ha.spark.rewind.operated import led
from leader.errors import LeaderError
from leader.layout.names import SPARK, check_job
from store.errors import AlreadyExists, NotFound

if TYPE_CHECKING:
    from ha.spark.checkpoint_tools.importing import CopiedCheckpoint


@command()
@flag_option("--replace", "Move a checkpoint that QUERY has in JOB into the trash of JOB.")
@click.option(
    "--map",
    "mapping",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Give the operators the numbers that a changed program gives them. FILE is what `ha job preflight --json` has "
    "printed of QUERY and that program. If they cannot be matched without doubt, nothing is done.",
)
@lead_option
def import_(
    context: Context, job: str, query: str, uri: str, replace: bool, mapping: Path | None, timeout: float
) -> None:
    """Copy the checkpoint directory at URI into JOB, as the checkpoint of QUERY. Create JOB if it does not exist.

    Stop the query that wrote the checkpoint first, and all processes that contend for JOB: this command leads JOB
    while it copies. If it is interrupted, run it again: it continues where it stopped.
    """
    needs("Copying", "pyarrow")
    from ha.spark.checkpoint_tools.importing import check_source, import_checkpoint  # noqa: PLC0415  # loads pyarrow

    plan = None if mapping is None else _plan(mapping, query)
    with refusals_as_errors():
        check_job(job)
        # Refuse what can be refused without the lease: a leadership takes an epoch.
        check_source(query, uri, context.stores.open, plan)
        if not replace:
            _check_free(context, job, query)
        with led(context.stores, job, timeout, "imported") as leadership, copying(context.as_json) as told:
            copied = import_checkpoint(leadership, query, uri, replace=replace, told=told, plan=plan)
    undo = f"ha trash restore {job} --query" if copied.replaced else REMOVE.format(job)
    _show(context, job, query, "imported", copied, f"; `{undo} {shlex.quote(query)}` undoes it")


@command()
@value_option("--batch", click.IntRange(0), "N", "Copy it as it was after batch N.  [default: the newest]")
def export(context: Context, job: str, query: str, uri: str, batch: int | None) -> None:
    """Copy the checkpoint of QUERY in JOB to URI: what a restart after one batch needs. JOB may be running.

    `ha checkpoint verify` says which batches can be taken.

    If it is interrupted, run it again: it continues where it stopped.
    """
    needs("Copying", "pyarrow")
    from ha.spark.checkpoint_tools.exporting import export_checkpoint  # noqa: PLC0415

    with refusals_as_errors(), copying(context.as_json) as told:
        copied = export_checkpoint(job, query, uri, batch=batch, told=told, **context.flags)
    for said in bound({query: copied.inputs}, uri):
        click.echo(f"{job}: {printable(said)}", err=True)
    _show(context, job, query, "exported", copied)


class _Planned(msgspec.Struct):
    """What is needed of a verdict of `ha job preflight`."""

    query: str
    before: list[Layout]
    after: list[Layout]


class _Plan(msgspec.Struct):
    """What is needed of what `ha job preflight --json` prints."""

    queries: list[_Planned]


def _plan(file: Path, query: str) -> tuple[Layouts, Layouts]:
    """Read the operators of a checkpoint and of a program, and match them before anything is done."""
    # LeaderError: they cannot be matched without doubt. UsageError: the file says nothing of that query.
    try:
        said = {each.query: each for each in msgspec.json.decode(file.read_bytes(), type=_Plan).queries}
    except (OSError, msgspec.DecodeError) as error:
        raise click.UsageError(f"{file} is not what `ha job preflight --json` prints ({error}).") from error
    if query not in said:
        raise click.UsageError(f"{file} says nothing of query {query!r}: it has {', '.join(said) or 'none'}.")
    before, after = ({each.id: each for each in side} for side in (said[query].before, said[query].after))
    try:
        numbers = match(before, after)
    except Doubt as doubt:
        raise LeaderError(f"{doubt}\nNothing was done.") from doubt
    moved = ", ".join(f"{old} becomes {new}" for old, new in sorted(numbers.items()) if old != new)
    click.echo(f"operators: {moved or 'all keep their numbers'}", err=True)
    return before, after


def _check_free(context: Context, job: str, query: str) -> None:
    """Refuse a query that has a checkpoint, unless an earlier try has left a copy: that one is continued."""
    from ha.spark.checkpoint_tools.importing import IMPORTING  # noqa: PLC0415  # loads pyarrow

    try:
        directory = context.admin.directory(job)
        taken = any(entry.name == query for entry in directory.list(SPARK))
        begun = taken and any(entry.name == query for entry in directory.list(IMPORTING))
    except (LeaderError, NotFound):
        return  # no such job yet, or another leader has just begun: the import itself looks again
    if taken and not begun:
        raise AlreadyExists(
            f"Query {query!r} of job {job!r} has a checkpoint already: add --replace, which moves it to the trash."
        )


def _show(context: Context, job: str, query: str, what: str, copied: "CopiedCheckpoint", undone: str = "") -> None:
    before = f", {copied.kept} of them copied before" if copied.kept else ""
    batch = "no batch" if copied.batch is None else f"batch {copied.batch}"
    context.show(
        {"job": job, "query": query, **asdict(copied)},
        f"{job}: {query} is {what}: {batch}, {copied.files} files, {copied.bytes:,} bytes{before}{undone}",
    )
