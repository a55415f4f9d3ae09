"""The operators' commands: ``ha list``, ``ha history``, ``ha resign`` and ``ha switchover``."""

import contextlib
import getpass
import json
import os
import re
import socket
from collections.abc import Iterator

import click
import msgspec
from rich.console import Console
from rich.table import Table

from ha.cli.options import Seconds, json_option, printable, settings, stores
from ha.config.stores import Stores
from ha.views.jobs import summaries
from ha.views.records import grants
from leader.errors import LeaderError, NoLeader
from leader.job.admin import JobAdmin
from leader.layout.lease import ANYBODY, check_contender

wait_option = click.option(
    "--timeout",
    type=Seconds(),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for another leader, in seconds.",
)


@click.command("list")
@json_option
@stores
def list_jobs(as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """List all jobs: state, epoch, mode and holder of the lease, and all contenders.

    Below: who has paused which job, when and why; which contenders are barred from it, because their host is drained;
    and when a job that keeps failing is tried again.
    """
    with job_admin(files, zookeeper) as admin:
        rows = summaries(admin)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(rows)))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("JOB", "STATE", "EPOCH", "LEASE", "HOLDER", "CONTENDERS"):
        table.add_column(column)
    for row in rows:
        contenders = "?" if row.contenders is None else " ".join(row.contenders)
        table.add_row(row.job, row.state or "?", str(row.epoch), row.lease, row.holder or "-", contenders or "-")
    Console(soft_wrap=True).print(table)
    for row in rows:
        if row.paused is not None:
            pause = row.paused
            said = f"paused by {pause.by or 'an operator'} since {pause.at or 'a time that is not known'}"
            why = f" ({printable(pause.reason)})" if pause.reason else ""
            click.echo(f"{row.job}: {said}{why}: nobody takes over until `ha resume {row.job}`")
        for each in row.barred:
            why = f" ({printable(each.reason)})" if each.reason else ""
            click.echo(
                f"{row.job}: {each.contender} is barred by {each.by or 'an operator'} until {each.until}{why}: it does "
                f"not take over before, unless you `ha undrain {each.contender}`"
            )
        if row.next_try is not None:
            tries = row.next_try
            click.echo(
                f"{row.job}: has failed {tries.failures} times in a row, at last on {tries.host} ({tries.cause}): the "
                f"next try is at {tries.at}" + (f"; no restart mends this: {tries.remedy}" if tries.remedy else "")
            )


@click.command("history")
@click.argument("job")
@json_option
@stores
def show_history(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print the grants of JOB, oldest first: time, epoch, contender, why it got the lease, and how it ended.

    At last come the operator who asked for that, and the contender that took it up after its sidecar had been killed.
    A dash stands for what is not over yet, "unrecorded" for what no leader has written down.
    """
    with job_admin(files, zookeeper) as admin:
        rows = msgspec.to_builtins(grants(admin, job))
    if as_json:
        click.echo(json.dumps(rows))
        return
    for row in rows:
        row["by"] = f"by {row['by']}" if row["by"] else ""
        row["adopted_by"] = f"adopted by {row['adopted_by']}" if row["adopted_by"] else ""
        click.echo("  ".join("-" if value is None else str(value) for value in row.values() if value != ""))


@click.command()
@click.argument("job")
@wait_option
@json_option
@stores
def resign(job: str, timeout: float, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Ask the leader of JOB to give up the leadership, and wait until another contender leads."""
    with job_admin(files, zookeeper) as admin:
        _hand_over(admin, job, ANYBODY, timeout, as_json=as_json)


@click.command()
@click.argument("job")
@click.option("--to", "successor", metavar="CONTENDER", help="The next leader; see `ha list`.  [default: any standby]")
@wait_option
@json_option
@stores
def switchover(
    job: str, successor: str | None, timeout: float, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Move the leadership of JOB to another contender, and wait until that one leads."""
    if successor is not None:
        check_contender(successor)
    with job_admin(files, zookeeper) as admin:
        contenders = admin.contenders(job)
        if successor is not None and contenders is not None and successor not in contenders:
            known = ", ".join(contenders) or "none"
            raise click.BadParameter(f"{successor!r} does not contend for job {job!r}. Its contenders: {known}.")
        if successor is None and contenders is not None and len(contenders) < 2:  # noqa: PLR2004  # the leader is one
            raise NoLeader(f"Job {job!r} has no standby: start one first.")
        _hand_over(admin, job, successor or ANYBODY, timeout, as_json=as_json)


def _hand_over(admin: JobAdmin, job: str, successor: str, timeout: float, *, as_json: bool) -> None:
    before = admin.ask_to_hand_over(job, successor, operator())
    click.echo(f"{job}: the leader of epoch {before.epoch} is asked to hand over.", err=True)
    after = admin.handed_over(job, before, timeout)
    if after is None:
        raise LeaderError(
            f"No contender has taken over job {job!r} in {timeout:g} s. The request stays: see `ha list` and the "
            "leader's log."
        )
    directory, lease = after
    if as_json:
        click.echo(
            json.dumps({"job": job, "before": before.epoch, "epoch": directory.epoch, "contender": lease.contender})
        )
        return
    click.echo(f"{job}: epoch {before.epoch} -> {directory.epoch}, led by {lease.contender}")


def operator() -> str:
    """Return who runs this command, for the history: user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        user = str(os.geteuid())
    return re.sub(r"[^A-Za-z0-9.-]", "-", f"{user}-on-{socket.gethostname()}")[:64]


@contextlib.contextmanager
def job_admin(files: str | None, zookeeper: str | None) -> Iterator[JobAdmin]:
    """Open the stores for an operator's command, and close them again."""
    with opened_stores(files, zookeeper) as opened:
        yield JobAdmin(opened.files, opened.zookeeper, opened.timing.call_timeout)


@contextlib.contextmanager
def opened_stores(files: str | None, zookeeper: str | None) -> Iterator[Stores]:
    """Open the stores, and close them again."""
    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        yield opened
    finally:
        opened.close()
