"""``ha list``, ``ha history``, ``ha resign``, ``ha switchover``: what operators do."""

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ha.cli.options import Seconds, json_option, settings, stores
from ha.stores import Stores
from leader.errors import LeaderError, NoLeader
from leader.lease import ANYBODY, Mode, check_contender
from leader.operations import Operations

wait_option = click.option(
    "--timeout",
    type=Seconds(),
    default=60.0,
    show_default=True,
    help="Seconds to wait for another leader.",
)


@click.command("list")
@json_option
@stores
def list_jobs(as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """List the jobs: state, epoch, how the lease is held, by whom, and who else contends."""
    with operations(files, zookeeper) as hand:
        rows = [_row(hand, job) for job in hand.jobs()]
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
    """Print the last grants of JOB, oldest first: when, epoch, session id, to whom and why."""
    with operations(files, zookeeper) as hand:
        grants = hand.history(job)
    for grant in grants:
        fields: dict[str, Any] = {
            "at": at_time(grant.at_ms),
            "epoch": grant.epoch,
            "session_id": grant.session_id,
            "contender": grant.contender,
            "reason": grant.reason,
        }
        click.echo(json.dumps(fields) if as_json else "  ".join(str(value) for value in fields.values()))


@click.command()
@click.argument("job")
@wait_option
@stores
def resign(job: str, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """Ask the leader of JOB to give the leadership up, and wait until another one leads."""
    with operations(files, zookeeper) as hand:
        _hand_over(hand, job, ANYBODY, timeout)


@click.command()
@click.argument("job")
@click.option("--to", "successor", metavar="CONTENDER", help="Who is to lead next; see `ha list`.")
@wait_option
@stores
def switchover(job: str, successor: str | None, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """Move the leadership of JOB, to CONTENDER if given, and wait until that is done."""
    if successor is not None:
        check_contender(successor)
    with operations(files, zookeeper) as hand:
        contenders = hand.contenders(job)
        if successor is not None and contenders is not None and successor not in contenders:
            known = ", ".join(contenders) or "nobody"
            raise click.BadParameter(f"{successor!r} does not contend for job {job!r}: {known} does.")
        if successor is None and contenders is not None and len(contenders) < 2:  # noqa: PLR2004  # the leader is one
            raise NoLeader(f"Nobody but its leader contends for job {job!r}: start a standby first.")
        _hand_over(hand, job, successor or ANYBODY, timeout)


def _hand_over(hand: Operations, job: str, successor: str, timeout: float) -> None:
    before = hand.ask_to_hand_over(job, successor)
    click.echo(f"{job}: epoch {before.epoch} is asked to end.", err=True)
    after = hand.handed_over(job, before, timeout)
    if after is None:
        raise LeaderError(
            f"Nobody has taken over job {job!r} in {timeout:g} s; the request stands: see `ha list` and its log."
        )
    directory, lease = after
    click.echo(f"{job}: epoch {before.epoch} -> {directory.epoch}, led by {lease.contender}")


def at_time(at_ms: int) -> str:
    """Write a time of the file system's: milliseconds since 1970."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # the file system says what somebody has set, be it the year 300,000
        return "unknown"


def _row(hand: Operations, job: str) -> dict[str, Any]:
    try:
        directory, lease = hand.lease(job)
    except NoLeader:
        return {"job": job, "state": None, "epoch": None, "lease": "damaged", "holder": None, "contenders": None}
    held = lease.mode is not Mode.RELEASED
    return {
        "job": job,
        "state": hand.state(job, directory),
        "epoch": directory.epoch,
        "lease": lease.mode.value,
        "holder": lease.contender if held else None,
        "contenders": hand.contenders(job),
    }


@contextlib.contextmanager
def operations(files: str | None, zookeeper: str | None) -> Iterator[Operations]:
    """Open an operator's hand on the jobs, and close it again."""
    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        yield Operations(opened.files, opened.zookeeper, opened.timing.call_timeout)
    finally:
        opened.close()
