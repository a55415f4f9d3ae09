"""The verbs that ask something of the leader of a job: ``ha job stop`` and ``cancel``, and ``ha savepoint``."""

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress

import click
import msgspec

from ha.cli.context import Context, command, consent, operator, refusals_as_errors
from ha.cli.options import flag_option, printable, seconds_option, value_option, yes_option
from ha.cli.progress import waiting
from ha.spark.replication.report import SUFFIX
from ha.spark.rewind.operated import led
from ha.verbs.asking import ask, new_id, once_led
from ha.verbs.places import DRAIN, PARTIAL, TIMEOUT, TIMEOUT_S, TO
from ha.verbs.table import (
    CANCEL,
    OF_LEADER,
    RESTART,
    RESTART_FROM,
    SAVEPOINT,
    STOP,
    STOP_WITH_SAVEPOINT,
)
from ha.views.jobs import summary
from ha.views.remarks import is_left, remarks
from leader.errors import LeaderError, NotLeader
from leader.job.admin import JobAdmin
from leader.job.exceptions import JobException
from leader.job.request_folder import Request, Requests, State
from leader.job.status import JobStatus, Status
from leader.layout.checkpoint import CheckpointEntry
from leader.layout.names import CHECKPOINTS
from store.clock import BOOT_CLOCK, now
from store.errors import Invalid, StoreError

POLL_S = 0.25  # seconds between two looks for the answer; each costs the NameNode a list and a read
STOPPING_S = 60.0  # seconds that a command may need to end after its queries, for the wait
ANSWERING_S = 30.0  # seconds that the leader may need to find the request, and to answer it
LIVES_S = 2.0  # a command that runs for so long has been started as it should
LIFE_LOOK_S = 0.5

STEPS = {STOP: (Status.RUNNING, Status.FINISHED), CANCEL: (Status.CANCELLING, Status.CANCELED)}
CAUSES = {STOP: "stopped-by-operator", CANCEL: "cancelled"}  # words of the history


class Life:
    """The life of the next command of a job; what it had failed of before does not count."""

    def __init__(self, admin: JobAdmin, job: str) -> None:
        """Note the failures that are known; note them again while nothing is known to be started."""
        self._admin, self._job = admin, job
        self.before = self.failures()

    def failures(self) -> list[JobException]:
        """Return the failures that are known."""
        return self._admin.exceptions(self._job)

    def wait(self, end: float, *, batch: bool, epoch: int = 0) -> None:
        """Wait until the command of that epoch has lived for a while, or has completed a batch before ``end``."""
        # LeaderError: it has failed, or completes no batch in time; it runs on then.
        newest, lives = self._newest(), now() + LIVES_S
        while now() < (end if batch else lives):
            BOOT_CLOCK.sleep(LIFE_LOOK_S)
            with suppress(StoreError, NotLeader):  # the next look says
                failed = [each for each in self.failures() if each not in self.before and each.epoch >= epoch]
                if failed:
                    said = f"The new command of job {self._job!r} has failed: {failed[-1].message}"
                    raise LeaderError(f"{said}: see `ha job exceptions {self._job}`.")
                if batch and self._newest() > newest:
                    return
        if batch:
            raise LeaderError(f"The new command of job {self._job!r} runs, and has completed no batch in time.")

    def _newest(self) -> int:
        entries = self._admin.directory(self._job).list(CHECKPOINTS)
        found = (CheckpointEntry.parse(entry.name) for entry in entries)
        return max((each.checkpoint.id for each in found if each is not None), default=0)


def ask_and_wait(
    context: Context,
    job: str,
    verb: str,
    identity: str | None,
    timeout: float,
    arguments: Mapping[str, str] | None = None,
    life: Life | None = None,
) -> Request:
    """Leave the request, have the leader look, and wait for the answer, which is returned."""
    # LeaderError: the request has failed, or no answer comes. NoLeader: there is no such job, it has ended, or it has
    # no leader in time and the request cannot be kept.
    admin, end = context.admin, now() + timeout
    identity = identity or new_id()
    ended = ended_here(context, job, verb, identity, timeout)
    request = ended or once_led(lambda: ask(admin, job, verb, identity, operator(), arguments), end)
    if not request.state.final:
        who = f"the leader of epoch {request.epoch}" if request.epoch else "its leader, or else the next one,"
        click.echo(f"{job}: {who} is asked to {verb} (request {request.id}).", err=True)
    request = _answer(admin, job, request, end, life)
    if request.state is State.DONE or context.as_json:
        where, undo = shlex.quote(request.result.get("savepoint", "")), OF_LEADER[verb].undo
        undone = [] if verb in (RESTART, RESTART_FROM) else [undo.format(job=job, where=where)]
        context.show(request, [f"{job}: {request.said}", *filter(None, undone)])
    if request.state is State.DONE:
        return request
    if not request.state.final:
        has = "not ended it" if request.state is State.ACCEPTED else "not answered"
        stays = (
            "The request stays" if request.epoch else "It may have no leader now; the request stays for the next one"
        )
        raise LeaderError(
            f"The leader of job {job!r} has {has} in {timeout:g} s. {stays}: wait for it with "
            f"`--request-id {request.id}`."
        )
    raise LeaderError(f"The request to {verb} job {job!r} is {request.state.value}. {request.said}")


def _answer(admin: JobAdmin, job: str, request: Request, end: float, life: Life | None = None) -> Request:
    """Wait until a request is answered; returns it as it is at the end of the time, if it is not."""
    # A command that fails before that is none that was started for the request.
    requests: Requests | None = None
    shown = request.said
    with waiting(f"{job}: waits for the answer"):
        while not request.state.final and now() < end:
            BOOT_CLOCK.sleep(min(POLL_S, max(0.0, end - now())))
            try:
                requests = requests or Requests(admin.directory(job))
                failures = life.failures() if life is not None else []
                request = requests.load(request.id) or request
                if life is not None and not request.state.final:
                    life.before = failures
                if request.said != shown and not request.state.final:
                    shown = request.said
                    click.echo(f"{job}: {shown}", err=True)
            except (LeaderError, StoreError):  # a store is away for a while, or the next leader will answer
                requests = None
    return request


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


def request_options(seconds: float, what: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options that all requests have in common."""
    # `seconds`: usual time-out. `what`: what the time-out means; default: how long the command waits.

    def add(function: Callable[..., None]) -> Callable[..., None]:
        timeout = seconds_option(seconds, what or "Wait this long for the answer. The request stays.")
        identity = value_option(
            "--request-id", str, "ID", "Asking twice with one id is asking once.  [default: a new one]"
        )
        return timeout(identity(function))

    return add


@command()
@click.option(
    "--savepoint",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[URI]",
    help="Take a savepoint of the stopped job, at URI or among its own. Declared queries end after their present "
    "batches. --timeout is for these, and for the copy. Without a savepoint JOB keeps running.",
)
@flag_option(
    "--drain",
    "With --savepoint: declared queries process all that there is first. If they have not within --timeout, JOB "
    "goes on.",
)
@request_options(120.0)
def stop(
    context: Context, job: str, savepoint: str | None, drain: bool, timeout: float, request_id: str | None
) -> None:
    """Stop JOB in an orderly way: its command gets SIGTERM and time to end, and the job has FINISHED."""
    if drain and savepoint is None:
        raise click.UsageError("--drain says what is in a savepoint: give --savepoint as well.")
    if savepoint is None:
        ask_and_wait(context, job, "stop", request_id, timeout)
        return
    arguments = {TO: savepoint, TIMEOUT: f"{timeout:g}", DRAIN: "yes" if drain else ""}
    ask_and_wait(context, job, STOP_WITH_SAVEPOINT, request_id, 2 * timeout + STOPPING_S, arguments)


@command()
@request_options(120.0)
def cancel(context: Context, job: str, timeout: float, request_id: str | None) -> None:
    """Cancel JOB: its command is stopped, and the job is CANCELED, also if its leader ends meanwhile."""
    ask_and_wait(context, job, "cancel", request_id, timeout)


@command()
@flag_option("--partial", "Leave out queries that have completed no batch, and name them.")
@request_options(TIMEOUT_S, "Give the savepoint up after this time.")
def take(context: Context, job: str, uri: str | None, partial: bool, timeout: float, request_id: str | None) -> None:
    """Take a savepoint of JOB: all its queries at a consistent cut, at URI or among its own.

    URI is a new directory. Without one the savepoint is kept below JOB's directory, under the id of the request. It is
    complete in itself and stays until it is disposed of. JOB keeps running, also if the savepoint fails.

    It waits until each query has completed a batch. With --partial it names those that have not, and leaves them out: a
    job that starts from it starts these from scratch.

    Start from it with `ha run --from` or `ha job restart --from`. `ha checkpoint import` takes one query's checkpoint
    from URI/spark.
    """
    arguments = {TO: uri or "", TIMEOUT: f"{timeout:g}", PARTIAL: "yes" if partial else ""}
    ask_and_wait(context, job, SAVEPOINT, request_id, timeout + ANSWERING_S, arguments)


@command("list")
def list_savepoints(context: Context, job: str) -> None:
    """List JOB's own savepoints, oldest first."""
    from ha.spark.savepoints.places import own  # noqa: PLC0415  # loads what copies

    found = own(context.stores, context.admin.directory(job))
    if not found:
        click.echo(f"{job}: it has no savepoint of its own; `ha savepoint take {job}` takes one", err=True)
    context.show(
        [{"name": name, **msgspec.to_builtins(each)} for name, each in found],
        (f"{each.at}  {name}  epoch {each.epoch}  {printable(each.said)}" for name, each in found),
    )


@command()
@yes_option
def dispose(context: Context, job: str, where: str, yes: bool) -> None:
    """Delete the savepoint of JOB at URI, or its own one of that NAME, after a question. Nothing brings it back."""
    from ha.spark.savepoints.places import opened  # noqa: PLC0415  # loads what copies

    directory = context.admin.directory(job) if "://" not in where else None
    with refusals_as_errors(), opened(context.stores, directory, where) as place:
        manifest = place.read_of(job)
        context.tell(f"{job}: {where} of {manifest.at}, epoch {manifest.epoch}, is deleted for good: {manifest.said}")
        consent(yes=yes)
        place.dispose(job)
    context.show({"job": manifest.job, "disposed": where}, f"{job}: the savepoint {where} is deleted")
