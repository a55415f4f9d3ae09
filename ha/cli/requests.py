"""The verbs by which operators ask a leader for something: ``ha stop``, ``ha cancel`` and ``ha restart``."""

import json
from collections.abc import Callable

import click
import msgspec

from ha.cli.operate import job_admin, operator
from ha.cli.options import Seconds, json_option, stores
from ha.views.requests import ask
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.requests import Request, Requests, State
from store.clock import BOOT_CLOCK, now
from store.errors import StoreError

POLL_S = 0.25
"""Seconds between two looks for the answer; each costs the NameNode a list and a read."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what all requests have in common."""
    timeout = click.option(
        "--timeout",
        type=Seconds(),
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="Wait this long for the answer, in seconds. The request stays.",
    )
    identity = click.option(
        "--request-id", metavar="ID", help="Asking twice with one id is asking once.  [default: a new one]"
    )
    return click.argument("job")(timeout(identity(json_option(stores(command)))))


@click.command()
@_options
def stop(
    job: str, timeout: float, request_id: str | None, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Stop JOB in an orderly way: its command gets SIGTERM and time to end, and the job has FINISHED."""
    with job_admin(files, zookeeper) as admin:
        _ask(admin, job, "stop", request_id, timeout, as_json=as_json)


@click.command()
@_options
def cancel(
    job: str, timeout: float, request_id: str | None, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Cancel JOB: its command is stopped, and the job is CANCELED, also if its leader ends meanwhile."""
    with job_admin(files, zookeeper) as admin:
        _ask(admin, job, "cancel", request_id, timeout, as_json=as_json)


@click.command()
@_options
def restart(
    job: str, timeout: float, request_id: str | None, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Start the command of JOB again, on the same host and in the same epoch.

    A program that `ha submit` has stored is started in its newest version.
    """
    with job_admin(files, zookeeper) as admin:
        _ask(admin, job, "restart", request_id, timeout, as_json=as_json)


def _ask(admin: JobAdmin, job: str, verb: str, identity: str | None, timeout: float, *, as_json: bool) -> None:
    """Leave the request, have the leader look, and wait for the answer.

    Raises:
        LeaderError: the answer is no good news, or does not come.
        NoLeader: nobody leads the job, so there is nobody to ask.
    """
    end = now() + timeout
    request = ask(admin, job, verb, identity, operator())
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
    while not request.state.final and now() < end:
        BOOT_CLOCK.sleep(min(POLL_S, max(0.0, end - now())))
        try:
            requests = requests or Requests(admin.directory(job))
            request = requests.load(request.id) or request
        except (LeaderError, StoreError):  # a store is away for a while, or the next leader will answer
            requests = None
    return request
