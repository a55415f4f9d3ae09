"""``ha clean``, ``ha trash``: what a job that has ended for good leaves behind."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import click

from ha.cli.bulk import lead_option, led, understood
from ha.cli.operate import at_time, operations
from ha.cli.options import json_option, stores
from ha.spark.location import check_query
from leader.cleanup import Cleanup, Trashed


@click.command()
@click.argument("job")
@stores
def clean(job: str, files: str | None, zookeeper: str | None) -> None:
    """Move what JOB, which has ended for good, leaves into its trash: graph, blobs, Spark's checkpoints."""
    with _cleanup(job, files, zookeeper) as cleanup:
        name = cleanup.clean()
    click.echo(f"{job}: cleaned up; `ha trash restore {job}` undoes it, `ha trash empty {job}` makes it final ({name})")


@click.group()
def trash() -> None:
    """Look at what was cleaned up, take it back, or delete it for good."""


@trash.command("list")
@click.argument("job")
@json_option
@stores
def list_trash(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print what is in the trash of JOB, oldest first: when, name, folders, whether it can be restored."""
    with _cleanup(job, files, zookeeper) as cleanup:
        found = cleanup.trash()
    for each in found:
        click.echo(json.dumps(_fields(each)) if as_json else _sentence(each))


@trash.command()
@click.argument("job")
@click.option("--query", help="Take the checkpoint of QUERY back that was replaced last; nobody may lead JOB.")
@lead_option
@stores
def restore(job: str, query: str | None, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """Undo the last cleaning of JOB, unless it has been run again since."""
    if query is None:
        with _cleanup(job, files, zookeeper) as cleanup:
            name = cleanup.restore()
    else:
        check_query(query)
        with understood(), led(job, timeout, files, zookeeper) as leadership:
            name = leadership.queries.restore(query)
    click.echo(f"{job}: restored ({name})")


@trash.command()
@click.argument("job")
@stores
def empty(job: str, files: str | None, zookeeper: str | None) -> None:
    """Delete what is in the trash of JOB, for good."""
    with _cleanup(job, files, zookeeper) as cleanup:
        names = cleanup.empty()
    click.echo(f"{job}: deleted {', '.join(names) or 'nothing'}")


@contextlib.contextmanager
def _cleanup(job: str, files: str | None, zookeeper: str | None) -> Iterator[Cleanup]:
    """Open a job's hand."""
    with operations(files, zookeeper) as opened, understood():
        yield Cleanup(opened.directory(job))


def _fields(each: Trashed) -> dict[str, Any]:
    return {
        "at": at_time(each.at_ms),
        "name": each.name,
        "folders": list(each.folders),
        "restorable": each.restorable,
    }


def _sentence(each: Trashed) -> str:
    restorable = "" if each.restorable else "  (not to be restored: the job has been run again since)"
    return f"{at_time(each.at_ms)}  {each.name}  {' '.join(each.folders)}{restorable}"
