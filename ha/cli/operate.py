"""The operators' commands: ``ha job history`` and ``ha job handover``."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import click
import msgspec

from ha.cli.context import Context, cell, command, operator
from ha.cli.options import seconds_option
from ha.verbs.table import VERBS
from ha.views.records import grants
from leader.errors import Fenced, LeaderError, Leaderless, NoLeader
from leader.job.admin import JobAdmin
from leader.job.status import JobStatus
from leader.layout.lease import ANYBODY, check_contender
from leader.layout.names import LeaderDirectory
from store.clock import BOOT_CLOCK, now

T = TypeVar("T")

LOOK_S = 0.25  # seconds between two looks for a leader


@command("history")
@click.argument("job")
def show_history(context: Context, job: str) -> None:
    """Print the grants of JOB, oldest first: time, epoch, contender, why it got the lease, and how it ended.

    At last come the operator who asked for that, and the contender that took it up after its sidecar had been killed.
    A dash stands for what is not over yet, "unrecorded" for what no leader has written down.
    """
    rows = msgspec.to_builtins(grants(context.admin, job))
    context.show(rows, _grant_lines(rows))


def _grant_lines(rows: Iterable[dict[str, object]]) -> Iterator[str]:
    for row in rows:
        by, adopted = row.pop("by"), row.pop("adopted_by")
        further = [f"by {by}"] * bool(by) + [f"adopted by {adopted}"] * bool(adopted)
        yield "  ".join([*map(cell, row.values()), *further])


@command()
@click.argument("job")
@click.option(
    "--to", "successor", metavar="CONTENDER", help="The next leader; see `ha job list`.  [default: any standby]"
)
@seconds_option(60.0, "Wait this long for another leader, in seconds.")
def handover(context: Context, job: str, successor: str | None, timeout: float) -> None:
    """Have the leader of JOB hand over to another contender, and wait until that one leads."""
    admin = context.admin
    if successor is not None:
        check_contender(successor)
    contenders = admin.contenders(job)
    if contenders is not None and successor not in (None, *contenders, admin.lease(job)[1].contender):
        known = ", ".join(contenders) or "none"
        raise click.BadParameter(f"{successor!r} does not contend for job {job!r}. Its contenders: {known}.")
    if successor is None and contenders is not None and len(contenders) < 2:  # noqa: PLR2004  # the leader is one
        raise NoLeader(f"Job {job!r} has no standby: start one first.")
    before = admin.lease(job)[1].contender
    first, leader, contender = _hand_over(admin, job, successor or ANYBODY, timeout)
    undo = VERBS["handover"].undo.format(job=job, before=before)
    changed = f"{job}: epoch {first.epoch} -> {leader.epoch}, led by {contender}\n{undo}" if first else ""
    context.show(
        {"job": job, "before": (first or leader).epoch, "epoch": leader.epoch, "contender": contender},
        changed or f"{contender} leads {job} already, in epoch {leader.epoch}: nothing is changed",
    )


def _hand_over(
    admin: JobAdmin, job: str, successor: str, timeout: float
) -> tuple[LeaderDirectory | None, LeaderDirectory, str]:
    """Ask whoever leads, or leads next, until the one that is wanted does."""
    # Returns: the first leader that was asked, if one was; the present one, and its contender.
    end, first = now() + timeout, None
    while (before := once_led(lambda: _asked(admin, job, successor), end)) is not None:
        first = first or before
        click.echo(f"{job}: the leader of epoch {before.epoch} is asked to hand over.", err=True)
        found = admin.handed_over(job, before, max(0.0, end - now()))
        if found is None:
            raise LeaderError(
                f"No contender has taken over job {job!r} in {timeout:g} s. The request stays: see `ha job list` and "
                "the leader's log."
            )
        if successor == ANYBODY:
            break
    leader, lease = admin.lease(job)
    return first, leader, lease.contender


def _asked(admin: JobAdmin, job: str, successor: str) -> LeaderDirectory | None:
    try:
        return admin.ask_to_hand_over(job, successor, operator())
    except Leaderless:
        status = JobStatus(admin.directory(job)).read()
        if status.globally_terminal:
            raise NoLeader(f"Job {job!r} is {status.value}: no leader, and none to come.") from None
        raise


def once_led(do: Callable[[], T], end: float) -> T:
    """Ask the leader of a job for something; wait for a leader until ``end``, in seconds of the clock."""
    while True:
        try:
            return do()
        except (Leaderless, Fenced):  # the next one is on its way, or has just begun
            if now() >= end:
                raise
        BOOT_CLOCK.sleep(LOOK_S)
