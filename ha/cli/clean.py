"""``ha job clean`` and ``ha trash``: the leftovers of a job that has ended for good."""

import shlex
from collections.abc import Iterable, Iterator

import click

from ha.cli.context import Context, command, consent, refusals_as_errors
from ha.cli.options import lead_option, yes_option
from ha.spark.rewind.operated import led
from ha.spark.stored.locations import check_query
from ha.views.ages import at_time
from ha.views.jobs import summary
from ha.views.remarks import is_left, remarks
from leader.errors import LeaderError
from leader.job.cleanup import Cleanup, Trashed
from leader.layout.names import SPARK
from store.errors import NotFound

REMOVE = "ha checkpoint sweep {} --remove"  # what undoes that a query got a checkpoint, with the query behind it


@command()
@click.argument("job")
def clean(context: Context, job: str) -> None:
    """Move the leftovers of JOB into its trash: graph, blobs and Spark's checkpoints. JOB must have ended for good."""
    if is_left(found := summary(context.admin, job, context.leases)):
        raise LeaderError(
            f"Job {job!r} is {found.state}, and {next(remarks(found))}. `ha job cancel {job}` ends it for good; then "
            "it can be cleaned up."
        )
    with refusals_as_errors():
        name = Cleanup(context.directory(job)).clean()
    undo = f"`ha trash restore {job}` undoes it, `ha trash empty {job}` makes it final"
    context.show({"job": job, "trash": name}, f"{job}: cleaned up ({name}); {undo}")


@command("list")
@click.argument("job")
def list_trash(context: Context, job: str) -> None:
    """Print the trash of JOB, oldest first: time, name, folders, and whether it can be restored."""
    with refusals_as_errors(changes=False):
        found = Cleanup(context.directory(job)).trash()
    rows = [
        {"at": at_time(each.at_ms), "name": each.name, "folders": each.folders, "restorable": each.restorable}
        for each in found
    ]
    if not rows:
        click.echo(f"{job}: its trash is empty", err=True)
    context.show(rows, _lines(found))


def _lines(found: Iterable[Trashed]) -> Iterator[str]:
    for each in found:
        restorable = "" if each.restorable else "  (cannot be restored: the job has been run again since)"
        yield f"{at_time(each.at_ms)}  {each.name}  {' '.join(each.folders)}{restorable}"


def trashed(context: Context, job: str) -> set[tuple[str, str]]:
    """Return the checkpoints in the trash of a job: the name of each there, and its query's."""
    found = [(each.name, path) for each in Cleanup(context.directory(job)).trash() for path in each.folders]
    return {(name, path.removeprefix(f"{SPARK}/")) for name, path in found if path.startswith(f"{SPARK}/")}


@command()
@click.argument("job")
@click.option("--query", help="Restore the checkpoint of QUERY that was replaced last. No process may lead JOB.")
@lead_option
def restore(context: Context, job: str, query: str | None, timeout: float) -> None:
    """Undo the last cleanup of JOB. That is not possible once JOB has been run again."""
    undo = f"ha job clean {job}"
    with refusals_as_errors():
        if query is None:
            name = Cleanup(context.directory(job)).restore()
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
@click.argument("job")
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
        if found := Cleanup(context.directory(job)).trash():
            for line in _lines(found):
                context.tell(line)
            old = f", if it is older than {older_than:g} days" if older_than else ""
            context.tell(f"{job}: this is deleted for good{old}")
            consent(yes=yes)
        names = Cleanup(context.directory(job)).empty(round((older_than or 0) * 86_400_000))
    context.show({"job": job, "deleted": names}, f"{job}: deleted {', '.join(names) or 'nothing'}")
