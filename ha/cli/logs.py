"""``ha job logs``: what the command of a job has written on this host."""

import os
import shutil
import sys
import time
from collections import deque
from pathlib import Path
from typing import BinaryIO

import click

from ha.cli.context import Context, command
from ha.program import output_log
from ha.views.jobs import summary
from leader.errors import LeaderError
from leader.layout.names import check_job

LOOK_EVERY_S = 0.2


@command()
@click.argument("job")
@click.option("--previous", is_flag=True, help="Of the run before.")
@click.option("--lines", "-n", type=click.IntRange(min=0), help="Only so many of the last lines.  [default: all]")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written from now on, until interrupted.")
def logs(context: Context, job: str, previous: bool, lines: int | None, follow: bool) -> None:
    """Print what the command of JOB has written on this host: standard output and error of its newest run.

    The last five runs are kept, of each the newest 8 to 16 MiB, as this user's sidecars have started them. For example:
    `ha job logs orders -n 100 -f`.
    """
    runs = output_log.runs(check_job(job))
    if len(runs) <= previous:
        raise LeaderError(_elsewhere(context, job, previous=bool(runs)))
    path = runs[-2 if previous else -1]
    click.echo(f"{job}: {path}", err=True)
    for part in output_log.parts(path) if lines is None else ():
        with part.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    if lines:
        with path.open("rb") as file:
            sys.stdout.buffer.writelines(deque(file, lines))
    sys.stdout.buffer.flush()
    if follow:
        _follow(path)


def _elsewhere(context: Context, job: str, *, previous: bool) -> str:
    if previous:
        return f"Only one run of {job!r} is kept on this host."
    holder = summary(context.admin, job, context.leases).holder
    where = f"{holder} leads it: run this on that host, as the user of its sidecar" if holder else "It has no leader"
    where += f", or ask a process there that serves HTTP, at /api/v1/jobs/{job}/logs" if holder else ""
    return f"No run of {job!r} is kept on this host, in {output_log.folder(job)}. {where}."


def _follow(path: Path) -> None:
    """Copy what comes, also into the next part of the log."""
    file = path.open("rb")
    file.seek(0, 2)
    while True:
        _copy(file)
        if not os.path.samestat(path.stat(), os.fstat(file.fileno())):
            _copy(file)
            file.close()
            file = path.open("rb")
        time.sleep(LOOK_EVERY_S)


def _copy(file: BinaryIO) -> None:
    shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()
