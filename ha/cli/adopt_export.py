"""``ha adopt`` and ``ha export``: copy Spark's checkpoint directories into a job and out of it."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

import ha
from ha.checkpoints.inputs import bound
from ha.checkpoints.layouts import Layout, Layouts
from ha.checkpoints.renumbering import Doubt, match
from ha.cli.operate import job_admin
from ha.cli.options import Seconds, json_option, printable, settings, stores
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from ha.rewind.completing import settle
from leader.errors import LeaderError, NoLeader, NotLeader
from leader.layout.lease import Mode
from leader.layout.names import SPARK, check_job
from store.errors import AlreadyExists, Conflict, Invalid, NotFound
from store.outcome import doubts

if TYPE_CHECKING:
    from ha.spark.checkpoint_copy.adopting import Copied
    from ha.spark.checkpoint_copy.copying import Progress as Copying
    from ha.spark.checkpoint_copy.copying import Told

lead_option = click.option(
    "--timeout",
    type=Seconds(),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the job's lease, in seconds.",
)


@click.command()
@click.argument("job")
@click.argument("query")
@click.argument("uri")
@click.option("--replace", is_flag=True, help="Move a checkpoint that QUERY has in JOB into the trash of JOB.")
@click.option(
    "--map",
    "mapping",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Give the operators the numbers that a changed program gives them. FILE is what `ha preflight --json` has "
    "printed of QUERY and that program. If they cannot be matched without doubt, nothing is done.",
)
@lead_option
@json_option
@stores
def adopt(
    job: str,
    query: str,
    uri: str,
    replace: bool,
    mapping: Path | None,
    timeout: float,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Copy the checkpoint directory at URI into JOB, as the checkpoint of QUERY. Create JOB if it does not exist.

    Stop the query that wrote the checkpoint first, and all processes that contend for JOB: this command leads JOB
    while it copies. If it is interrupted, run it again: it continues where it stopped.
    """
    _needs_pyarrow()
    from ha.spark.checkpoint_copy.adopting import adopt as adopt_it  # noqa: PLC0415  # loads pyarrow
    from ha.spark.checkpoint_copy.adopting import check_source  # noqa: PLC0415

    plan = None if mapping is None else _plan(mapping, query)
    with refusals_as_errors():
        check_job(job)
        # Refuse what can be refused without the lease: a leadership takes an epoch.
        with contextlib.closing(Stores(settings(files=files, zookeeper=zookeeper))) as opened:
            check_source(query, uri, opened.open, plan)
        if not replace:
            _check_free(job, query, files, zookeeper)
    with refusals_as_errors(), led(job, timeout, files, zookeeper, "adopted") as leadership, shown(as_json) as told:
        copied = adopt_it(leadership, query, uri, replace=replace, told=told, plan=plan)
    if not as_json and copied.replaced:
        click.echo(
            f"{job}: the old checkpoint is in the trash; `ha trash restore {job} --query {query}` brings it back"
        )
    _say(job, query, "adopted", copied, as_json)


@click.command()
@click.argument("job")
@click.argument("query")
@click.argument("uri")
@click.option(
    "--batch", type=click.IntRange(min=0), metavar="N", help="Copy it as it was after batch N.  [default: the newest]"
)
@json_option
@stores
def export(
    job: str, query: str, uri: str, batch: int | None, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Copy the checkpoint of QUERY in JOB to URI: what a restart after one batch needs. JOB may be running.

    `ha verify` says which batches can be taken.

    If it is interrupted, run it again: it continues where it stopped.
    """
    _needs_pyarrow()
    from ha.spark.checkpoint_copy.exporting import export as export_it  # noqa: PLC0415

    with refusals_as_errors(), shown(as_json) as told:
        copied = export_it(job, query, uri, batch=batch, told=told, files=files, zookeeper=zookeeper)
    for said in bound({query: copied.inputs}, uri):
        click.echo(f"{job}: {printable(said)}", err=True)
    _say(job, query, "exported", copied, as_json)


class _Planned(msgspec.Struct):
    """What is needed of a verdict of `ha preflight`."""

    query: str
    before: list[Layout]
    after: list[Layout]


class _Plan(msgspec.Struct):
    """What is needed of what `ha preflight --json` prints."""

    queries: list[_Planned]


def _plan(file: Path, query: str) -> tuple[Layouts, Layouts]:
    """Read the operators of a checkpoint and of a program, and match them before anything is done.

    Raises:
        LeaderError: they cannot be matched without doubt.
        UsageError: the file says nothing of that query.
    """
    try:
        said = {each.query: each for each in msgspec.json.decode(file.read_bytes(), type=_Plan).queries}
    except (OSError, msgspec.DecodeError) as error:
        raise click.UsageError(f"{file} is not what `ha preflight --json` prints ({error}).") from error
    if query not in said:
        raise click.UsageError(f"{file} says nothing of query {query!r}: it has {', '.join(said) or 'none'}.")
    before, after = ({each.id: each for each in side} for side in (said[query].before, said[query].after))
    try:
        numbers = match(before, after)
    except Doubt as doubt:
        raise LeaderError(f"{doubt}\nNothing was done.") from doubt
    moved = ", ".join(f"{old} becomes {new}" for old, new in sorted(numbers.items()) if old != new)
    click.echo(f"operators: {moved or 'all keep their numbers'}", err=True)
    return before, after


@contextlib.contextmanager
def led(
    job: str, timeout: float, files: str | None, zookeeper: str | None, cause: str = "operated"
) -> Iterator[Leadership]:
    """Lead a job for as long as the block lasts; ``cause`` is what its history says of the end, if nothing fails.

    Raises:
        NotLeader: another contender leads it; the message names it.
    """
    leading = ha.lead(job, timeout=timeout, files=files, zookeeper=zookeeper)
    with contextlib.ExitStack() as stack:
        try:
            leadership = stack.enter_context(leading)
        except NotLeader as error:
            raise NotLeader(f"{_holder(job, files, zookeeper) or error}") from error
        settle(leadership)  # a rewind that was decided comes before whatever else is done
        yield leadership
        leading.record_end(cause)


def _check_free(job: str, query: str, files: str | None, zookeeper: str | None) -> None:
    """Refuse a query that has a checkpoint, unless an earlier try has left a copy: that one is continued."""
    from ha.spark.checkpoint_copy.adopting import ADOPTING  # noqa: PLC0415  # loads pyarrow

    with job_admin(files, zookeeper) as admin:
        try:
            directory = admin.directory(job)
            taken = any(entry.name == query for entry in directory.list(SPARK))
            begun = taken and any(entry.name == query for entry in directory.list(ADOPTING))
        except (LeaderError, NotFound):
            return  # no such job yet, or another leader has just begun: the adoption itself looks again
    if taken and not begun:
        raise AlreadyExists(
            f"Query {query!r} of job {job!r} has a checkpoint already: add --replace, which moves it to the trash."
        )


def _holder(job: str, files: str | None, zookeeper: str | None) -> str:
    try:
        with job_admin(files, zookeeper) as admin:
            directory, lease = admin.lease(job)
    except NoLeader:
        return ""
    if lease.mode is Mode.RELEASED:
        return (
            f"Job {job!r} is paused, so nobody may lead it: stop all processes that contend for it, and give "
            f"`ha resume {job}` first."
            if lease.paused
            else ""
        )
    return (
        f"Job {job!r} is led by {lease.contender} at epoch {directory.epoch}: stop all processes that contend for it, "
        "or do this in its program."
    )


@contextlib.contextmanager
def refusals_as_errors(*, changes: bool = True) -> Iterator[None]:
    """Report a refusal, such as a path that exists already, as a failed command (1), not as a store that fails (4).

    Only for commands that can be run again: if they change anything, an outcome that stays unknown says so.
    """
    again = doubts("the last change was made", "run the command again, which looks first and continues")
    try:
        with again if changes else contextlib.nullcontext():
            yield
    except (AlreadyExists, Conflict, Invalid, NotFound) as error:
        raise LeaderError(f"{error}") from error


@contextlib.contextmanager
def shown(quiet: bool) -> Iterator["Told | None"]:
    """Show a progress bar if standard error is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("listing files", total=None)

        def told(now: "Copying") -> None:
            files = f"{now.files_done}/{now.files} files"
            bar.update(task, description=files, completed=now.bytes_done, total=now.bytes)

        yield told


def _say(job: str, query: str, what: str, copied: "Copied", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"job": job, "query": query, **asdict(copied)}))
        return
    before = f", {copied.kept} of them copied before" if copied.kept else ""
    batch = "no batch" if copied.batch is None else f"batch {copied.batch}"
    click.echo(f"{job}: {query} is {what}: {batch}, {copied.files} files, {copied.bytes:,} bytes{before}")


def _needs_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise click.UsageError("Copying needs pyarrow: pip install 'hybrid-ha[spark]'.")
