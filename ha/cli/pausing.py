"""``ha pause`` and ``ha resume``: nobody takes over a job for a while."""

import json

import click
import msgspec

from ha.cli.operate import job_admin, operator
from ha.cli.options import json_option, stores
from ha.views.requests import PAUSE, RESUME, ask
from leader.job.requests import Request


@click.command()
@click.argument("job")
@click.option("--reason", default="", metavar="TEXT", help="Say why, in one line: `ha list` and all standbys show it.")
@json_option
@stores
def pause(job: str, reason: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Pause JOB: its leader stays, and nobody takes over, whatever happens to it.

    A leader that dies while its job is paused has no successor until `ha resume`. One that could not reach the stores
    for a while goes on when it can. Pausing a paused job changes its reason.
    """
    with job_admin(files, zookeeper) as admin:
        _print(ask(admin, job, PAUSE, None, operator(), reason), as_json=as_json)


@click.command()
@click.argument("job")
@json_option
@stores
def resume(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """End the pause of JOB: standbys take over again when they must. No error if it is not paused."""
    with job_admin(files, zookeeper) as admin:
        _print(ask(admin, job, RESUME, None, operator()), as_json=as_json)


def _print(request: Request, *, as_json: bool) -> None:
    click.echo(json.dumps(msgspec.to_builtins(request)) if as_json else request.said)
