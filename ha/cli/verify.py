"""``ha verify``: which batches of a job's queries, or of any checkpoint directory, can be continued."""

import contextlib
import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from ha.checkpoints.pace import Pace
from ha.cli.checkpoints import checkpoints
from ha.cli.options import json_option, printable, settings, stores
from ha.config.stores import Stores
from store.bounded import BoundedFiles
from store.errors import NotFound

if TYPE_CHECKING:
    from ha.checkpoints.checksums import ContentReport
    from ha.checkpoints.verify import Verified


@click.command()
@click.argument("target", metavar="JOB|URI")
@click.argument("query", required=False)
@click.option(
    "--checksums",
    is_flag=True,
    help="Also read every file that is needed, and compare the check sums that there are: Spark's, those in the files, "
    "and the store's own.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Ask the store at most this many times in a second.  [default: no limit]",
)
@json_option
@stores
def verify(
    target: str,
    query: str | None,
    checksums: bool,
    rate: float | None,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Verify each batch that Spark retains of the queries of JOB, or of the checkpoint directory at URI.

    By names, lengths and what the small files say; the job may be running. Exit with 1 if a file is missing or damaged.
    What Spark forgets by design is told, and is no damage.
    """
    if find_spec("pyarrow") is None:
        raise click.UsageError("Verifying needs pyarrow: pip install 'hybrid-ha[spark]'.")
    opened = Stores(settings(files=files, zookeeper=zookeeper))
    found = {}
    before = Pace(rate).wait if rate is not None else bool
    try:
        with checkpoints(opened, target, query) as places:
            for name, place in places.items():
                found[name] = _verified(*place, name, before, checksums=checksums, quiet=as_json)
    finally:
        opened.close()
    if as_json:
        rows = [
            {"query": name, "batches": msgspec.to_builtins(batches)}
            | ({"contents": msgspec.to_builtins(read)} if read is not None else {})
            for name, (batches, read) in found.items()
        ]
        click.echo(json.dumps(rows))
    else:
        for name, (batches, read) in found.items():
            _show(name, batches, read)
    if any(each.condition == "damaged" for batches, _ in found.values() for each in batches):
        click.get_current_context().exit(1)


def _verified(
    files: BoundedFiles, path: str, name: str, before: Callable[[], object], *, checksums: bool, quiet: bool
) -> "tuple[list[Verified], ContentReport | None]":
    from ha.checkpoints.checksums import verify_contents  # noqa: PLC0415  # loads pyarrow
    from ha.checkpoints.reading import CheckpointReader  # noqa: PLC0415
    from ha.checkpoints.trees import Tree  # noqa: PLC0415
    from ha.checkpoints.verify import verify as verify_it  # noqa: PLC0415

    def reader() -> CheckpointReader:
        return CheckpointReader(Tree(files, path, before))

    try:
        found, _ = verify_it(reader)
        if not checksums:
            return found, None
        with progress_of_bytes(quiet, f"reading {name}") as told:
            return verify_contents(reader, found, told)
    except NotFound as error:
        raise click.UsageError(
            f"There is no checkpoint at {files.at(path)}, or it was moved just now: try again."
        ) from error


@contextlib.contextmanager
def progress_of_bytes(quiet: bool, what: str) -> Iterator[Callable[[int, int], object] | None]:
    """Show a progress bar if standard error is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _show(name: str, batches: "list[Verified]", read: "ContentReport | None") -> None:
    if not batches:
        click.echo(f"{printable(name)}: no batch is committed")
        return
    counts = {each.condition: sum(1 for other in batches if other.condition == each.condition) for each in batches}
    told = ", ".join(f"{count} {condition}" for condition, count in counts.items())
    click.echo(f"{printable(name)}: batches {batches[0].batch} to {batches[-1].batch}: {told}")
    if read is not None:
        parts = {
            "agree with a check sum": read.summed,
            "have none and have the right form": read.formed,
            "could only be read": read.unchecked,
        }
        said = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
        click.echo(f"  {read.files} files were read, {read.bytes:,} bytes: {said or 'none is good'}")
    for each in batches:
        if each.missing:
            click.echo(f"  batch {each.batch} is {each.condition}. {printable(each.missing)}: {each.reason}")
