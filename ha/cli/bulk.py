"""``ha adopt``, ``ha export``: Spark's checkpoint directories, into a job and out of it."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

import ha
from ha.cli.operate import operations
from ha.cli.options import Seconds, json_option, stores
from ha.leadership import Leadership
from leader.errors import LeaderError, NoLeader, NotLeader
from leader.lease import Mode
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from ha.spark.bulk.adopting import Copied
    from ha.spark.bulk.copying import Progress as Copying
    from ha.spark.bulk.copying import Told

lead_option = click.option(
    "--timeout", type=Seconds(), default=10.0, show_default=True, help="Seconds to wait for the job's lease."
)


@click.command()
@click.argument("job")
@click.argument("query")
@click.argument("uri")
@click.option("--replace", is_flag=True, help="Move the checkpoint that QUERY has into the trash of JOB.")
@lead_option
@json_option
@stores
def adopt(
    job: str,
    query: str,
    uri: str,
    replace: bool,
    timeout: float,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Copy the checkpoint directory at URI into JOB, as that of QUERY; the job is made if there is none.

    The query that wrote it must have been stopped. JOB is led by this command meanwhile, so nobody else may lead it.
    If it is interrupted, run it again: it goes on.
    """
    _needs_pyarrow()
    from ha.spark.bulk.adopting import adopt as adopt_it  # noqa: PLC0415  # pyarrow, for who copies

    with understood(), led(job, timeout, files, zookeeper) as leadership, _shown(as_json) as told:
        copied = adopt_it(leadership, query, uri, replace=replace, told=told)
    if not as_json and copied.replaced:
        click.echo(f"{job}: `ha trash restore {job} --query {query}` takes the one back that was there before")
    _say(job, query, "adopted", copied, as_json)


@click.command()
@click.argument("job")
@click.argument("query")
@click.argument("uri")
@json_option
@stores
def export(job: str, query: str, uri: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Copy the checkpoint of QUERY to URI, as it was right after its newest batch; JOB may run.

    If it is interrupted, run it again: it goes on.
    """
    _needs_pyarrow()
    from ha.spark.bulk.exporting import export as export_it  # noqa: PLC0415

    with understood(), _shown(as_json) as told:
        copied = export_it(job, query, uri, told=told, files=files, zookeeper=zookeeper)
    _say(job, query, "exported", copied, as_json)


@contextlib.contextmanager
def led(job: str, timeout: float, files: str | None, zookeeper: str | None) -> Iterator[Leadership]:
    """Lead a job for as long as the block lasts.

    Raises:
        NotLeader: it is led by somebody else; the message says by whom.
    """
    leading = ha.lead(job, timeout=timeout, files=files, zookeeper=zookeeper)
    with contextlib.ExitStack() as stack:
        try:
            leadership = stack.enter_context(leading)
        except NotLeader as error:
            raise NotLeader(f"{_holder(job, files, zookeeper) or error}") from error
        yield leadership


def _holder(job: str, files: str | None, zookeeper: str | None) -> str:
    try:
        with operations(files, zookeeper) as hand:
            directory, lease = hand.lease(job)
    except NoLeader:
        return ""
    if lease.mode is Mode.RELEASED:
        return ""
    return (
        f"Job {job!r} is led by {lease.contender} at epoch {directory.epoch}: stop all that contend for it, or do this "
        "in its program."
    )


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """What a store was not even asked to do is no failure of the store."""
    try:
        yield
    except (AlreadyExists, Conflict, Invalid, NotFound) as error:
        raise LeaderError(f"{error}") from error


@contextlib.contextmanager
def _shown(quiet: bool) -> Iterator["Told | None"]:
    """A bar on the terminal, if there is one."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("listing", total=None)

        def told(now: "Copying") -> None:
            files = f"{now.files_done}/{now.files} files"
            bar.update(task, description=files, completed=now.bytes_done, total=now.bytes)

        yield told


def _say(job: str, query: str, what: str, copied: "Copied", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"job": job, "query": query, **asdict(copied)}))
        return
    before = f", {copied.kept} of them before" if copied.kept else ""
    batch = "no batch" if copied.batch is None else f"batch {copied.batch}"
    click.echo(f"{job}: {query} is {what}: {batch}, {copied.files} files, {copied.bytes:,} bytes{before}")


def _needs_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise click.UsageError("Copying needs pyarrow: pip install 'hybrid-ha[spark]'.")
