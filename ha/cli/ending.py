"""Ends a job that no process leads: ``ha job stop`` and ``ha job cancel`` lead it for the moment that this takes."""

import click

from ha.cli.context import Context, operator
from ha.spark.replication.report import SUFFIX
from ha.spark.rewind.operated import led
from ha.verbs.table import CANCEL, STOP
from ha.views.jobs import summary
from ha.views.remarks import is_left, remarks
from leader.errors import LeaderError, NotLeader
from leader.job.request_folder import Request, Requests
from leader.job.status import JobStatus, Status
from store.errors import Invalid

STEPS = {STOP: (Status.RUNNING, Status.FINISHED), CANCEL: (Status.CANCELLING, Status.CANCELED)}
CAUSES = {STOP: "stopped-by-operator", CANCEL: "cancelled"}  # words of the history


def ended_here(context: Context, job: str, verb: str, identity: str, timeout: float) -> Request | None:
    """End a job that nobody leads, and note the request; None if a leader is to be asked."""
    # The lease decides, and not the look: while a process holds it, or a standby is quicker, this ends nothing.
    # LeaderError: no job in its state can end so.
    found = summary(context.admin, job, context.leases)
    if not is_left(found):
        return None
    click.echo(f"{job}: {next(remarks(found))}.", err=True)
    # A pause may be in the way, or a contender is about to lead the job.
    if verb not in STEPS or found.paused or found.contenders or found.job.endswith(SUFFIX):
        return None
    click.echo(f"{job}: this command takes its lease, to {verb} it.", err=True)
    try:
        with led(context.stores, job, timeout, CAUSES[verb]) as leadership:
            status = JobStatus(leadership.own)
            for state in STEPS[verb]:
                if (present := status.read()) is not state:
                    status.change(present, state)
            said = (
                f"No process led the job: the command of the operator has ended it, and it is {STEPS[verb][-1].value}."
            )
            return Requests(leadership.own).note(identity, verb, operator(), {}, said)
    except NotLeader:  # a standby was quicker: it is asked
        return None
    except Invalid as error:
        raise LeaderError(f"{error} `ha job cancel {job}` ends it for good.") from error
