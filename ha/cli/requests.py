"""The verbs by which operators ask a leader for something: ``ha stop``, ``ha cancel`` and ``ha restart``."""

import json
from collections.abc import Callable, Mapping

import click
import msgspec

from ha.cli.operate import job_admin, opened_stores, operator
from ha.cli.options import Seconds, json_option, stores
from ha.cli.preflight import check_first, preflight_option, stored
from ha.config.stores import Stores
from ha.sidecar.operator_requests import EXCLUDE, QUERY, RESTART, RESTART_FROM, RESTART_QUERY, STOP_WITH_SAVEPOINT
from ha.spark.savepoints.arguments import DISCARD, DRAIN, FROM, TIMEOUT, TO
from ha.views.requests import ask
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.excluded import hosts_of, text_of
from leader.job.programs import Programs
from leader.job.requests import Request, Requests, State
from store.clock import BOOT_CLOCK, now
from store.errors import StoreError

POLL_S = 0.25
"""Seconds between two looks for the answer; each costs the NameNode a list and a read."""


STOPPING_S = 60.0
"""Seconds that a command may need to end after its queries, for the wait."""


def request_options(seconds: float, what: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options that all requests have in common.

    Args:
        seconds: usual time-out.
        what: what the time-out means; default: how long the command waits.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        timeout = click.option(
            "--timeout",
            type=Seconds(),
            default=seconds,
            show_default=True,
            metavar="SECONDS",
            help=what or "Wait this long for the answer, in seconds. The request stays.",
        )
        identity = click.option(
            "--request-id", metavar="ID", help="Asking twice with one id is asking once.  [default: a new one]"
        )
        return click.argument("job")(timeout(identity(json_option(stores(command)))))

    return add


@click.command()
@click.option(
    "--savepoint",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[URI]",
    help="Take a savepoint of the stopped job, at URI or among its own. Declared queries end after their present "
    "batches. --timeout is for these, and for the copy. If there is no savepoint, JOB goes on.",
)
@click.option(
    "--drain",
    is_flag=True,
    help="With --savepoint: declared queries process all that there is first. If they have not within --timeout, JOB "
    "goes on.",
)
@request_options(120.0)
def stop(
    job: str,
    savepoint: str | None,
    drain: bool,
    timeout: float,
    request_id: str | None,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Stop JOB in an orderly way: its command gets SIGTERM and time to end, and the job has FINISHED."""
    if drain and savepoint is None:
        raise click.UsageError("--drain says what is in a savepoint: give --savepoint as well.")
    with job_admin(files, zookeeper) as admin:
        if savepoint is None:
            ask_and_wait(admin, job, "stop", request_id, timeout, as_json=as_json)
            return
        arguments = {TO: savepoint, TIMEOUT: f"{timeout:g}", DRAIN: "yes" if drain else ""}
        wait = 2 * timeout + STOPPING_S
        ask_and_wait(admin, job, STOP_WITH_SAVEPOINT, request_id, wait, arguments, as_json=as_json)


@click.command()
@request_options(120.0)
def cancel(
    job: str, timeout: float, request_id: str | None, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Cancel JOB: its command is stopped, and the job is CANCELED, also if its leader ends meanwhile."""
    with job_admin(files, zookeeper) as admin:
        ask_and_wait(admin, job, "cancel", request_id, timeout, as_json=as_json)


@click.command()
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
@preflight_option
@request_options(120.0)
def restart(
    job: str,
    query: str | None,
    savepoint: str | None,
    discard_newer: bool,
    exclude: tuple[str, ...],
    unchecked: bool,
    timeout: float,
    request_id: str | None,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Start the command of JOB again, on the same host and in the same epoch.

    A program that `ha submit` has stored is started in its newest version. With --query the command goes on, and only
    queries that it has declared with ha.spark.Job are started again.
    A stored program that was not checked when it was stored is checked before the command ends: see `ha preflight`.
    """
    if discard_newer and savepoint is None:
        raise click.UsageError("--discard-newer says what happens with --from: give that as well.")
    if query is not None and savepoint is not None:
        raise click.UsageError("A savepoint is of all queries: give --query or --from.")
    if query is not None and exclude:
        raise click.UsageError("Executors stay when a query is started again: leave --query or --exclude out.")
    hosts = {EXCLUDE: text_of(hosts_of(",".join(exclude)))} if exclude else {}
    if query is None and savepoint is None and not unchecked:
        with opened_stores(files, zookeeper) as opened:
            _check_stored(opened, job)
    with job_admin(files, zookeeper) as admin:
        if query is not None:
            ask_and_wait(admin, job, RESTART_QUERY, request_id, timeout, {QUERY: query}, as_json=as_json)
            return
        if savepoint is None:
            ask_and_wait(admin, job, RESTART, request_id, timeout, hosts, as_json=as_json)
            return
        arguments = {FROM: savepoint, DISCARD: "yes" if discard_newer else "", **hosts}
        ask_and_wait(admin, job, RESTART_FROM, request_id, timeout, arguments, as_json=as_json)


def _check_stored(opened: Stores, job: str) -> None:
    """Check the newest stored program, if there is one that was not checked when it was stored.

    Raises:
        LeaderError: it does not fit the checkpoints of the job.
    """
    directory = JobAdmin(opened.files, None, opened.timing.call_timeout).directory(job)
    newest = Programs(directory).newest()
    if newest is not None and not newest.checked:
        check_first(opened, job, stored(opened, job))


def ask_and_wait(
    admin: JobAdmin,
    job: str,
    verb: str,
    identity: str | None,
    timeout: float,
    arguments: Mapping[str, str] | None = None,
    *,
    as_json: bool,
) -> None:
    """Leave the request, have the leader look, and wait for the answer.

    Raises:
        LeaderError: the answer is no good news, or does not come.
        NoLeader: nobody leads the job, so there is nobody to ask.
    """
    end = now() + timeout
    request = ask(admin, job, verb, identity, operator(), arguments=arguments)
    if not request.state.final:
        click.echo(f"{job}: the leader of epoch {request.epoch} is asked to {verb} (request {request.id}).", err=True)
    request = _answer(admin, job, request, end)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(request)))
    elif request.state is State.DONE:
        click.echo(f"{job}: {request.said}")
    if request.state is State.DONE:
        return
    if not request.state.final:
        raise LeaderError(
            f"The leader of job {job!r} has {'not ended it' if request.state is State.ACCEPTED else 'not answered'} in "
            f"{timeout:g} s. The request stays: wait for it with `--request-id {request.id}`."
        )
    raise LeaderError(f"The request to {verb} job {job!r} is {request.state.value}. {request.said}")


def _answer(admin: JobAdmin, job: str, request: Request, end: float) -> Request:
    """Wait until a request is answered; returns it as it is at the end of the time, if it is not."""
    requests: Requests | None = None
    shown = request.said
    while not request.state.final and now() < end:
        BOOT_CLOCK.sleep(min(POLL_S, max(0.0, end - now())))
        try:
            requests = requests or Requests(admin.directory(job))
            request = requests.load(request.id) or request
            if request.said != shown and not request.state.final:
                shown = request.said
                click.echo(f"{job}: {shown}", err=True)
        except (LeaderError, StoreError):  # a store is away for a while, or the next leader will answer
            requests = None
    return request
