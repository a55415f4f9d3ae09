"""``ha job stop``, ``ha job cancel`` and ``ha job restart``: operators ask the leader of a job for something."""

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress

import click

from ha.cli.clean import trashed
from ha.cli.context import Context, command, operator
from ha.cli.ending import ended_here
from ha.cli.life import LIVES_S, Life
from ha.cli.operate import once_led
from ha.cli.options import seconds_option
from ha.cli.preflight import check_first, preflight_option, stored
from ha.verbs.asking import ask, new_id
from ha.verbs.places import DISCARD, DRAIN, FROM, TIMEOUT, TO
from ha.verbs.table import EXCLUDE, OF_LEADER, QUERY, RESTART, RESTART_FROM, RESTART_QUERY, STOP_WITH_SAVEPOINT
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.excluded import hosts_of, text_of
from leader.job.programs import Programs
from leader.job.request_folder import Request, Requests, State
from store.clock import BOOT_CLOCK, now
from store.errors import StoreError

POLL_S = 0.25  # seconds between two looks for the answer; each costs the NameNode a list and a read


STOPPING_S = 60.0  # seconds that a command may need to end after its queries, for the wait


def request_options(seconds: float, what: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options that all requests have in common."""
    # `seconds`: usual time-out. `what`: what the time-out means; default: how long the command waits.

    def add(function: Callable[..., None]) -> Callable[..., None]:
        timeout = seconds_option(seconds, what or "Wait this long for the answer, in seconds. The request stays.")
        identity = click.option(
            "--request-id", metavar="ID", help="Asking twice with one id is asking once.  [default: a new one]"
        )
        return click.argument("job")(timeout(identity(function)))

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
@click.option(
    "--drain",
    is_flag=True,
    help="With --savepoint: declared queries process all that there is first. If they have not within --timeout, JOB "
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
@click.option(
    "--from",
    "savepoint",
    metavar="URI|NAME",
    help="Start from this savepoint, at a URI or among JOB's own. The present checkpoints go to the trash of JOB.",
)
@click.option(
    "--discard-newer", is_flag=True, help="With --from: even if JOB has done more since. That goes to its trash."
)
@click.option(
    "--query",
    metavar="QUERY",
    help="Start only this declared query again, with those that it is connected to; the others go on.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="HOST",
    help="Executors keep off HOST from this restart on, until one without --exclude; on YARN. Repeat it for more "
    "hosts. Drained hosts are excluded in any case.",
)
@click.option(
    "--wait",
    type=click.Choice(["command", "batch"]),
    default="command",
    show_default=True,
    help=f"Wait until the new command has run for {LIVES_S:g} s, or until it has completed a batch.",
)
@preflight_option
@request_options(120.0)
def restart(
    context: Context,
    job: str,
    query: str | None,
    savepoint: str | None,
    discard_newer: bool,
    exclude: tuple[str, ...],
    wait: str,
    unchecked: bool,
    timeout: float,
    request_id: str | None,
) -> None:
    """Start the command of JOB again, on the same host and in the same epoch.

    A program that `ha job submit` has stored is started in its newest version; the exit code is 1 if another one runs
    then, because the sidecar was started with a COMMAND, or if the new one fails at once. With --query the command
    goes on, and only queries that it has declared with ha.spark.Job are started again. A stored program that was not
    checked when it was stored is checked before the command ends: see `ha job preflight`.
    """
    if discard_newer and savepoint is None:
        raise click.UsageError("--discard-newer says what happens with --from: give that as well.")
    if query is not None and savepoint is not None:
        raise click.UsageError("A savepoint is of all queries: give --query or --from.")
    if query is not None and exclude:
        raise click.UsageError("Executors stay when a query is started again: leave --query or --exclude out.")
    hosts = {EXCLUDE: text_of(hosts_of(",".join(exclude)))} if exclude else {}
    if query is None and savepoint is None and not unchecked:
        _check_stored(context, job)
    if query is not None:
        ask_and_wait(context, job, RESTART_QUERY, request_id, timeout, {QUERY: query})
        return
    life, end = Life(context.admin, job), now() + timeout
    if savepoint is None:
        answered = ask_and_wait(context, job, RESTART, request_id, timeout, hosts, life)
        if exclude:
            context.tell(OF_LEADER[RESTART].undo.format(job=job))
    else:
        arguments = {FROM: savepoint, DISCARD: "yes" if discard_newer else "", **hosts}
        before = trashed(context, job)
        answered = ask_and_wait(context, job, RESTART_FROM, request_id, timeout, arguments, life)
        with suppress(StoreError):  # it is done, whether or not its undo can be told
            for _, replaced in sorted(trashed(context, job) - before):
                context.tell(OF_LEADER[RESTART_FROM].undo.format(job=job, query=shlex.quote(replaced)))
    newest, runs = Programs(context.directory(job)).newest(), (answered.result or {}).get("runs")
    if newest is not None and runs is not None and runs["version"] != newest.version:
        raise LeaderError(
            f"Version {newest.version} of job {job!r} is stored, and does not run: the sidecar {runs['contender']} was "
            "started with another COMMAND, or a newer one was stored meanwhile. Start `ha run` without a COMMAND."
        )
    life.wait(end, batch=wait == "batch", epoch=runs["epoch"] if runs is not None else 0)


def _check_stored(context: Context, job: str) -> None:
    """Check the newest stored program, if there is one that was not checked when it was stored."""
    # LeaderError: it does not fit the checkpoints of the job.
    newest = Programs(context.directory(job)).newest()
    if newest is not None and not newest.checked:
        check_first(context.stores, job, stored(context.stores, job))


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
