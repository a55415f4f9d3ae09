"""The operators' commands: ``ha list``, ``ha history``, ``ha resign`` and ``ha switchover``."""

import contextlib
import getpass
import json
import os
import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ha.cli.options import Seconds, json_option, settings, stores
from ha.config.stores import Stores
from leader.errors import LeaderError, NoLeader
from leader.job.admin import JobAdmin
from leader.job.status import Status
from leader.layout.lease import ANYBODY, Mode, check_contender

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
    """List all jobs: state, epoch, mode and holder of the lease, and all contenders."""
    with job_admin(files, zookeeper) as admin:
        rows = [_row(admin, job) for job in admin.jobs()]
    if as_json:
        click.echo(json.dumps(rows))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("JOB", "STATE", "EPOCH", "LEASE", "HOLDER", "CONTENDERS"):
        table.add_column(column)
    for row in rows:
        contenders = "?" if row["contenders"] is None else " ".join(row["contenders"])
        state = row["state"] or "?"
        table.add_row(row["job"], state, str(row["epoch"]), row["lease"], row["holder"] or "-", contenders or "-")
    Console(soft_wrap=True).print(table)


@click.command("history")
@click.argument("job")
@json_option
@stores
def show_history(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print the grants of JOB, oldest first: time, epoch, contender, why it got the lease, and how it ended.

    A dash stands for what is not over yet, "unrecorded" for what no leader has written down.
    """
    with job_admin(files, zookeeper) as admin:
        grants = admin.history(job)
    rows: list[dict[str, Any]] = [
        {
            "at": at_time(grant.at_ms) if grant.at_ms else None,
            "epoch": grant.epoch,
            "session_id": grant.session_id or None,
            "contender": grant.contender or None,
            "reason": grant.reason,
            "ended": grant.ended or None,
            "by": grant.by or None,
        }
        for grant in grants
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    for row in rows:
        row["by"] = f"by {row['by']}" if row["by"] else ""
        click.echo("  ".join("-" if value is None else str(value) for value in row.values()).rstrip())


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


def at_time(at_ms: int) -> str:
    """Write a time of the file system, in milliseconds since 1970, as text."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # anybody can set a file's time, to the year 300,000 for example
        return "unknown"


def _row(admin: JobAdmin, job: str) -> dict[str, Any]:
    try:
        directory, lease = admin.lease(job)
    except NoLeader:
        return {"job": job, "state": None, "epoch": None, "lease": "damaged", "holder": None, "contenders": None}
    held = lease.mode is not Mode.RELEASED
    return {
        "job": job,
        "state": _state(admin.state(job, directory), led=held),
        "epoch": directory.epoch,
        "lease": lease.mode.value,
        "holder": lease.contender if held else None,
        "contenders": admin.contenders(job),
    }


def _state(stored: str | None, *, led: bool) -> str | None:
    """Return a job's state as people see it: what runs is suspended while nobody leads it."""
    if stored is None or led or stored == Status.CREATED.value or Status(stored).globally_terminal:
        return stored
    return Status.SUSPENDED.value


@contextlib.contextmanager
def job_admin(files: str | None, zookeeper: str | None) -> Iterator[JobAdmin]:
    """Open the stores for an operator's command, and close them again."""
    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        yield JobAdmin(opened.files, opened.zookeeper, opened.timing.call_timeout)
    finally:
        opened.close()
