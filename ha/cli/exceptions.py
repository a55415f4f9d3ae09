"""``ha exceptions``: the newest failures of a job, with their traces."""

import json

import click
import msgspec

from ha.cli.operate import job_admin
from ha.cli.options import json_option, printable, settings, stores
from ha.views.records import failures


@click.command("exceptions")
@click.argument("job")
@json_option
@stores
def exceptions(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print the newest failures of JOB, oldest first: time, host, epoch, query, class and message.

    Below each are its trace and, of a program that did not answer, the stacks of its threads. A job's failures stay
    when its leader changes; the setting `exceptions_retained` says how many.
    """
    retained = settings(files=files, zookeeper=zookeeper).exceptions_retained
    with job_admin(files, zookeeper) as admin:
        found = failures(admin, job, retained)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found)))
        return
    if not found:
        click.echo(f"{job}: no failure is known")
    for each in found:
        head = (each.at, each.host, each.epoch, each.query, each.kind)
        click.echo("  ".join("-" if value is None else printable(str(value)) for value in head))
        for text in filter(None, (each.message, each.trace, each.dump)):
            for line in text.splitlines():
                click.echo(f"    {printable(line)}".rstrip())
