"""``ha job handover``, ``pause`` and ``resume``: who leads a job, and whether another one may."""

import click

from ha.cli.context import Context, command, operator
from ha.cli.options import seconds_option, value_option
from ha.cli.progress import waiting
from ha.verbs.asking import REASON, ask, once_led
from ha.verbs.table import OF_LEADER, PAUSE, RESUME, VERBS
from leader.errors import LeaderError, Leaderless, NoLeader
from leader.job.admin import JobAdmin
from leader.job.status import JobStatus
from leader.layout.lease import ANYBODY, check_contender
from leader.layout.names import LeaderDirectory
from store.clock import now


@command()
@value_option("--to", str, "CONTENDER", "The next leader; see `ha job list`.  [default: any standby]", name="successor")
@seconds_option(60.0, "Wait this long for another leader.")
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
    with waiting(f"{job}: waits for the next leader"):
        first, leader, contender = _hand_over(admin, job, successor or ANYBODY, timeout)
    if first and successor is None and contender == before:
        raise LeaderError(f"No standby of {job!r} took over: {contender} leads again, in epoch {leader.epoch}.")
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


@command()
@click.option(
    "--reason", default="", metavar="TEXT", help="Say why, in one line: `ha job list` and all standbys show it."
)
def pause(context: Context, job: str, reason: str) -> None:
    """Pause JOB: its leader stays, and no process takes over, even if the leader dies.

    A leader that dies while its job is paused has no successor until `ha job resume`. One that could not reach the
    stores for a while resumes when it can. Pausing a paused job changes its reason.
    """
    request = ask(context.admin, job, PAUSE, None, operator(), {REASON: reason})
    context.show(request, [request.said, OF_LEADER[PAUSE].undo.format(job=job)])


@command()
def resume(context: Context, job: str) -> None:
    """End the pause of JOB: standbys take over again when they must. No error if it is not paused."""
    request = ask(context.admin, job, RESUME, None, operator())
    context.show(request, [request.said, OF_LEADER[RESUME].undo.format(job=job)])
