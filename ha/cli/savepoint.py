"""``ha savepoint``: take a savepoint of a job, list its own, and dispose of one."""

import click
import msgspec

from ha.cli.context import Context, command, consent, refusals_as_errors
from ha.cli.options import printable, yes_option
from ha.cli.requests import ask_and_wait, request_options
from ha.verbs.places import PARTIAL, TIMEOUT, TIMEOUT_S, TO
from ha.verbs.table import SAVEPOINT

ANSWERING_S = 30.0  # seconds that the leader may need to find the request, and to answer it


@command()
@click.option("--partial", is_flag=True, help="Leave out queries that have completed no batch, and name them.")
@request_options(TIMEOUT_S, "Give the savepoint up after this time, in seconds.")
@click.argument("uri", required=False)
def take(context: Context, job: str, uri: str | None, partial: bool, timeout: float, request_id: str | None) -> None:
    """Take a savepoint of JOB: all its queries at a consistent cut, at URI or among its own.

    URI is a new directory. Without one the savepoint is kept below JOB's directory, under the id of the request. It is
    complete in itself and stays until it is disposed of. JOB keeps running, also if the savepoint fails.

    It waits until each query has completed a batch. With --partial it names those that have not, and leaves them out: a
    job that starts from it starts these from scratch.

    Start from it with `ha run --from` or `ha job restart --from`. `ha checkpoint import` takes one query's checkpoint
    from URI/spark.
    """
    arguments = {TO: uri or "", TIMEOUT: f"{timeout:g}", PARTIAL: "yes" if partial else ""}
    ask_and_wait(context, job, SAVEPOINT, request_id, timeout + ANSWERING_S, arguments)


@command("list")
@click.argument("job")
def list_savepoints(context: Context, job: str) -> None:
    """List JOB's own savepoints, oldest first."""
    from ha.spark.savepoints.places import own  # noqa: PLC0415  # loads what copies

    found = own(context.stores, context.directory(job))
    if not found:
        click.echo(f"{job}: it has no savepoint of its own; `ha savepoint take {job}` takes one", err=True)
    context.show(
        [{"name": name, **msgspec.to_builtins(each)} for name, each in found],
        (f"{each.at}  {name}  epoch {each.epoch}  {printable(each.said)}" for name, each in found),
    )


@command()
@click.argument("job")
@click.argument("where", metavar="URI|NAME")
@yes_option
def dispose(context: Context, job: str, where: str, yes: bool) -> None:
    """Delete the savepoint of JOB at URI, or its own one of that NAME, after a question. Nothing brings it back."""
    from ha.spark.savepoints.places import opened  # noqa: PLC0415  # loads what copies

    directory = context.directory(job) if "://" not in where else None
    with refusals_as_errors(), opened(context.stores, directory, where) as place:
        manifest = place.read_of(job)
        context.tell(f"{job}: {where} of {manifest.at}, epoch {manifest.epoch}, is deleted for good: {manifest.said}")
        consent(yes=yes)
        place.dispose(job)
    context.show({"job": manifest.job, "disposed": where}, f"{job}: the savepoint {where} is deleted")
