"""``ha rescale``: gives the state of a query another number of partitions, or a job another number of executors."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec
from rich.console import Console

from ha.cli.adopt_export import led, refusals_as_errors
from ha.cli.operate import job_admin
from ha.cli.options import Seconds, json_option, printable, settings, stores
from ha.cli.requests import ask_and_wait
from ha.cli.rewind import consent, outputs_option
from ha.cli.state import meaning, silent
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from ha.sidecar.operator_requests import EXECUTORS, RESCALE_EXECUTORS
from leader.errors import LeaderError

if TYPE_CHECKING:
    from ha.spark.checkpoint_copy.rescaling import Rescaled, RescaleOutlook, Rescaling

MOST = 100_000
"""Most partitions: each of them is a directory, and a task in every batch."""

MOST_EXECUTORS = 9999
"""As a request takes it: see :mod:`ha.views.requests`."""

LEASE_S, ANSWER_S = 10.0, 90.0
"""Waits for the job's lease, and for the answer of its program, which waits for the cluster for a minute."""


@click.command()
@click.argument("job")
@click.argument("query", required=False)
@click.option(
    "--partitions",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="The new number of state partitions, and so of the tasks that work on state.",
)
@click.option(
    "--executors",
    type=click.IntRange(1, MOST_EXECUTORS),
    metavar="N",
    help="The number of executors that the running JOB has from now on; in place of QUERY and --partitions.",
)
@click.option(
    "--request-id",
    metavar="ID",
    help="With --executors: asking twice with one id is asking once.  [default: a new one]",
)
@click.option("--deep", is_flag=True, help="Compare all keys and values of the state by hashes, not only their number.")
@click.option(
    "--redo-begun",
    is_flag=True,
    help="If QUERY has begun a batch and not committed it: do it again, with the same input, under the number after "
    "the next one. Outputs of this package know it again; one that goes by Spark's numbers gets its rows twice.",
)
@outputs_option
@click.option("--dry-run", is_flag=True, help="Only say what would be done; JOB may be running.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    type=Seconds(),
    metavar="SECONDS",
    help="Wait this long, in seconds, for the job's lease, or for the answer of --executors.  "
    f"[default: {LEASE_S:g}, or {ANSWER_S:g}]",
)
@json_option
@stores
def rescale(
    job: str,
    query: str | None,
    partitions: int | None,
    executors: int | None,
    request_id: str | None,
    deep: bool,
    redo_begun: bool,
    names: tuple[str, ...],
    no_output: bool,
    dry_run: bool,
    yes: bool,
    timeout: float | None,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Give the state of QUERY in JOB another number of partitions, or the running JOB another number of executors.

    Spark freezes the number of partitions, spark.sql.shuffle.partitions, with the first batch of a query. Stop JOB
    first, best with `ha stop JOB --savepoint`, and all processes that contend for it: this command leads JOB meanwhile.
    It starts a Spark on this host, which repartitions a copy of the checkpoint; keys are compared, and one rename puts
    the copy in its place. The old one goes into the trash of JOB; `ha rewind JOB QUERY --undo` brings it back. The
    state must be in RocksDB.

    If it is interrupted, the query is as before, or rescaled as soon as anybody leads JOB; run the command again.

    With --executors N JOB goes on, and its program, which uses ha.spark.lead, asks its cluster for N executors. When it
    is started again, it begins with the number of its own settings.
    """
    if executors is not None:
        if query or partitions or deep or redo_begun or names or no_output or dry_run:
            raise click.UsageError("With --executors only --request-id, --timeout and --json can be given.")
        wait, wanted = ANSWER_S if timeout is None else timeout, {EXECUTORS: f"{executors}"}
        with job_admin(files, zookeeper) as admin:
            ask_and_wait(admin, job, RESCALE_EXECUTORS, request_id, wait, wanted, as_json=as_json)
        return
    if query is None or partitions is None or request_id is not None:
        raise click.UsageError("Say what is rescaled: QUERY with --partitions N, or --executors N of the running JOB.")
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise click.UsageError("A rescale needs Spark: pip install 'hybrid-ha[spark]'.")
    if names and no_output:
        raise click.UsageError("Choose one of --output and --no-output.")
    asked = _Asked(
        job, query, partitions, deep, redo_begun, names or (() if no_output else None), dry_run, yes, as_json
    )
    wait = LEASE_S if timeout is None else timeout
    opening = contextlib.closing(Stores(settings(files=files, zookeeper=zookeeper)))
    with refusals_as_errors(changes=not dry_run), opening as opened:
        outlook, done = _done(asked, opened, led(job, wait, files, zookeeper, "rescaled"))
    if as_json:
        states = [msgspec.to_builtins(each) for each in done.states] if done else []
        said = {"job": job, **msgspec.to_builtins(outlook), "dry_run": dry_run, "states": states}
        click.echo(json.dumps({**said, "trash": done.plan.trash if done else ""}))
    elif dry_run:
        click.echo("nothing was changed (--dry-run)")
    elif done:
        _say(asked, done)


class _Asked(NamedTuple):
    """A request to rescale."""

    job: str
    query: str
    partitions: int
    deep: bool
    redo_begun: bool
    names: tuple[str, ...] | None
    dry_run: bool
    yes: bool
    quiet: bool


def _say(asked: _Asked, done: "Rescaled") -> None:
    for each in done.states:
        same = "keys and values are the same" if each.hash is not None else "there are as many"
        click.echo(f"operator {each.operator}, {printable(each.state)}: {each.keys} keys; {same}")
    click.echo(
        f"{asked.job}: {asked.query} has {asked.partitions} state partitions; the former ones are in the trash "
        f"({done.plan.trash}), and `ha rewind {asked.job} {asked.query} --undo` brings them back"
    )


def _done(
    asked: _Asked, opened: Stores, leading: contextlib.AbstractContextManager[Leadership]
) -> "tuple[RescaleOutlook, Rescaled | None]":
    """Do it, and return what was to be done, with what was done; None if that is nothing."""
    from ha.spark.checkpoint_copy.rescaling import Rescaling  # noqa: PLC0415  # loads pyarrow and PySpark

    # What can be refused without the lease is.
    outlook = Rescaling(opened.files, asked.job, asked.query).look(asked.partitions, asked.names)
    if not asked.quiet:
        _tell(asked, outlook)
    if asked.dry_run or outlook.is_there:
        return outlook, None
    _check(asked, outlook)
    consent(yes=asked.yes)
    with leading as leadership:
        rescaling = Rescaling(opened.files, asked.job, asked.query, leadership.own.leader)
        outlook = rescaling.look(asked.partitions, asked.names)  # perhaps it has gone on meanwhile
        if outlook.is_there:  # an earlier try had decided it
            return outlook, None
        _check(asked, outlook)
        return outlook, _rescaled(asked, rescaling, leadership)


def _rescaled(asked: _Asked, rescaling: "Rescaling", leadership: Leadership) -> "Rescaled":
    from pyspark.errors import PySparkException  # noqa: PLC0415  # takes half a second

    try:
        with _shown(asked.quiet) as told, silent():
            return rescaling.rescale(leadership, asked.partitions, asked.names, deep=asked.deep, told=told)
    except PySparkException as error:
        raise LeaderError(
            f"Spark cannot repartition the state of {asked.query}, and nothing was changed: {meaning(error)}"
        ) from error


def _check(asked: _Asked, outlook: "RescaleOutlook") -> None:
    """Refuse what the user has to say first."""
    if outlook.begun and not asked.redo_begun:
        raise click.UsageError(
            f"Query {outlook.query} has begun batch {outlook.batch + 1} and not committed it. Start the job once more "
            f"and stop it with `ha stop {asked.job} --savepoint`, which lets declared queries end their batch; or add "
            "--redo-begun, if its outputs are those of this package, or may get the rows of that batch twice."
        )
    if outlook.unclear:
        raise click.UsageError(
            f"The job has several queries, so say which outputs are those of {outlook.query}, with --output NAME or "
            f"--no-output: they follow if this is undone. The job has {', '.join(outlook.outputs)}."
        )


def _tell(asked: _Asked, outlook: "RescaleOutlook") -> None:
    if outlook.is_there:
        click.echo(f"{asked.job}: {outlook.query} has {outlook.present} state partitions: there is nothing to do")
        return
    click.echo(
        f"{asked.job}: {outlook.query} goes from {outlook.present} to {outlook.partitions} state partitions after "
        f"batch {outlook.batch}; {outlook.files} files, {outlook.bytes:,} bytes are copied"
    )
    if outlook.begun:
        click.echo(f"batch {outlook.batch + 1}, which it has begun, is done again as batch {outlook.batch + 2}")


@contextlib.contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[str], object]]:
    """Show the progress if standard error is a terminal, and go on when it is turned off for Spark."""
    if quiet or not Console(stderr=True).is_terminal:
        yield bool
        return
    with os.fdopen(os.dup(2), "w", encoding="utf-8") as kept, Console(file=kept).status("looking") as status:
        yield lambda text: status.update(printable(text))
