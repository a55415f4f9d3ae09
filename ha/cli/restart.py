"""``ha job restart``: has the leader of a job start its command, or one of its queries, again."""

import shlex
from contextlib import suppress

import click

from ha.cli.clean import trashed
from ha.cli.context import Context, command
from ha.cli.options import flag_option
from ha.cli.preflight import check_first, preflight_option, stored
from ha.cli.progress import waiting
from ha.cli.requests import LIVES_S, Life, ask_and_wait, request_options
from ha.verbs.places import DISCARD, FROM
from ha.verbs.table import EXCLUDE, OF_LEADER, QUERY, RESTART, RESTART_FROM, RESTART_QUERY
from leader.errors import LeaderError
from leader.job.excluded import hosts_of, text_of
from leader.job.programs import Programs
from store.clock import now
from store.errors import StoreError


@command()
@click.option(
    "--from",
    "savepoint",
    metavar="URI|NAME",
    help="Start from this savepoint, at a URI or among JOB's own. The present checkpoints go to the trash of JOB.",
)
@flag_option("--discard-newer", "With --from: even if JOB has done more since. That goes to its trash.")
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
    checked yet is checked before the command ends: see `ha job preflight`.
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
    newest, runs = Programs(context.admin.directory(job)).newest(), (answered.result or {}).get("runs")
    if newest is not None and runs is not None and runs["version"] != newest.version:
        raise LeaderError(
            f"Version {newest.version} of job {job!r} is stored, and does not run: the sidecar {runs['contender']} was "
            "started with another COMMAND, or a newer one was stored meanwhile. Start `ha run` without a COMMAND."
        )
    with waiting(f"{job}: waits for a batch of the new command" if wait == "batch" else f"{job}: looks at it"):
        life.wait(end, batch=wait == "batch", epoch=runs["epoch"] if runs is not None else 0)


def _check_stored(context: Context, job: str) -> None:
    """Check the newest stored program, if there is one that was not checked when it was stored."""
    # LeaderError: it does not fit the checkpoints of the job.
    newest = Programs(context.admin.directory(job)).newest()
    if newest is not None and not newest.checked:
        check_first(context.stores, job, stored(context.stores, job))
