"""``ha clean`` and ``ha trash``: the leftovers of a job that has ended for good."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import click

from ha.cli.adopt_export import lead_option, led, refusals_as_errors
from ha.cli.operate import job_admin
from ha.cli.options import json_option, stores
from ha.spark.locations import check_query
from ha.views.jobs import at_time
from leader.job.cleanup import Cleanup, Trashed


@click.command()
@click.argument("job")
@json_option
@stores
def clean(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Move the leftovers of JOB into its trash: graph, blobs and Spark's checkpoints. JOB must have ended for good."""
    with _cleanup(job, files, zookeeper) as cleanup:
        name = cleanup.clean()
    if as_json:
        click.echo(json.dumps({"job": job, "trash": name}))
        return
    click.echo(f"{job}: cleaned up ({name}); `ha trash restore {job}` undoes it, `ha trash empty {job}` makes it final")


@click.group()
def trash() -> None:
    """List, restore or delete what was cleaned up."""


@trash.command("list")
@click.argument("job")
@json_option
@stores
def list_trash(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print the trash of JOB, oldest first: time, name, folders, and whether it can be restored."""
    with _cleanup(job, files, zookeeper, changes=False) as cleanup:
        found = cleanup.trash()
    if as_json:
        click.echo(json.dumps([_fields(each) for each in found]))
        return
    for each in found:
        click.echo(_sentence(each))


@trash.command()
@click.argument("job")
@click.option(
    "--query",
    help="Restore the checkpoint of QUERY that was replaced last. No process may lead JOB.",
)
@lead_option
@json_option
@stores
def restore(
    job: str, query: str | None, timeout: float, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Undo the last cleanup of JOB. That is not possible once JOB has been run again."""
    if query is None:
        with _cleanup(job, files, zookeeper) as cleanup:
            name = cleanup.restore()
    else:
        check_query(query)
        with refusals_as_errors(), led(job, timeout, files, zookeeper) as leadership:
            name = leadership.queries.restore(query)
    click.echo(json.dumps({"job": job, "restored": name}) if as_json else f"{job}: restored ({name})")


@trash.command()
@click.argument("job")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DAYS",
    help="Only what has been there so long, by the clock of the store.  [default: everything]",
)
@json_option
@stores
def empty(job: str, older_than: float | None, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Delete everything in the trash of JOB for good."""
    with _cleanup(job, files, zookeeper) as cleanup:
        names = cleanup.empty(round((older_than or 0) * 86_400_000))
    deleted = f"{job}: deleted {', '.join(names) or 'nothing'}"
    click.echo(json.dumps({"job": job, "deleted": list(names)}) if as_json else deleted)


@contextlib.contextmanager
def _cleanup(job: str, files: str | None, zookeeper: str | None, *, changes: bool = True) -> Iterator[Cleanup]:
    with job_admin(files, zookeeper) as opened, refusals_as_errors(changes=changes):
        yield Cleanup(opened.directory(job))


def _fields(each: Trashed) -> dict[str, Any]:
    return {
        "at": at_time(each.at_ms),
        "name": each.name,
        "folders": list(each.folders),
        "restorable": each.restorable,
    }


def _sentence(each: Trashed) -> str:
    restorable = "" if each.restorable else "  (cannot be restored: the job has been run again since)"
    return f"{at_time(each.at_ms)}  {each.name}  {' '.join(each.folders)}{restorable}"
