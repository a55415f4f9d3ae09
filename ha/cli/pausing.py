"""``ha job pause`` and ``ha job resume``: no process takes over a job for a while."""

import click

from ha.cli.context import Context, command, operator
from ha.verbs.asking import REASON, ask
from ha.verbs.table import OF_LEADER, PAUSE, RESUME


@command()
@click.argument("job")
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
@click.argument("job")
def resume(context: Context, job: str) -> None:
    """End the pause of JOB: standbys take over again when they must. No error if it is not paused."""
    request = ask(context.admin, job, RESUME, None, operator())
    context.show(request, [request.said, OF_LEADER[RESUME].undo.format(job=job)])
