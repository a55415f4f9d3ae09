"""``ha checkpoint verify``: checks which batches of a job's queries, or of any checkpoint directory, can be resumed."""

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from ha.checkpoints.trees import Pace
from ha.cli.context import Context, command, needs
from ha.cli.inspect import checkpoints
from ha.cli.options import POSITIVE, flag_option, printable, value_option
from ha.cli.progress import progress
from store.bounded import BoundedFiles
from store.errors import NotFound

if TYPE_CHECKING:
    from ha.checkpoints.verify import ContentReport, Verified


@command()
@flag_option(
    "--checksums",
    "Also read every file that is needed, and compare the check sums that there are: Spark's, those in the files, "
    "and the store's own.",
)
@value_option("--rate", POSITIVE, "N", "Ask the store at most this many times in a second.  [default: no limit]")
def verify(context: Context, target: str, query: str | None, checksums: bool, rate: float | None) -> None:
    """Verify each batch that Spark retains of the queries of JOB, or of the checkpoint directory at URI.

    By names, lengths and what the small files say; the job may be running. Exit with 1 if a file is missing or damaged.
    Files that Spark deletes by design are listed, and are no damage.
    """
    needs("Verifying", "pyarrow")
    before = Pace(rate).wait if rate is not None else bool
    with checkpoints(context, target, query) as places:
        found = {
            name: _verified(*place, name, before, checksums=checksums, quiet=context.as_json)
            for name, place in places.items()
        }
    rows = [
        {"query": name, "batches": msgspec.to_builtins(batches)}
        | ({"contents": msgspec.to_builtins(read)} if read is not None else {})
        for name, (batches, read) in found.items()
    ]
    job = "" if "://" in target else target
    context.show(rows, (line for name, each in found.items() for line in _lines(name, *each, job)))
    if any(each.condition in ("damaged", "altered") for batches, _ in found.values() for each in batches):
        click.get_current_context().exit(1)


def _verified(
    files: BoundedFiles, path: str, name: str, before: Callable[[], object], *, checksums: bool, quiet: bool
) -> "tuple[list[Verified], ContentReport | None]":
    from ha.checkpoints.checkpoint_reader import CheckpointReader  # noqa: PLC0415
    from ha.checkpoints.trees import Tree  # noqa: PLC0415
    from ha.checkpoints.verify import verify as verify_it  # noqa: PLC0415
    from ha.checkpoints.verify import verify_contents  # noqa: PLC0415  # loads pyarrow

    def reader() -> CheckpointReader:
        return CheckpointReader(Tree(files, path, before))

    try:
        found, _ = verify_it(reader)
        if not checksums:
            return found, None
        with progress(quiet, f"reading {name}") as told:
            return verify_contents(reader, found, told)
    except NotFound as error:
        raise click.UsageError(
            f"There is no checkpoint at {files.at(path)}, or it was moved just now: try again."
        ) from error


def _lines(name: str, batches: "list[Verified]", read: "ContentReport | None", job: str) -> Iterator[str]:
    if not batches:
        yield f"{printable(name)}: no batch is committed"
        return
    counts = {each.condition: sum(1 for other in batches if other.condition == each.condition) for each in batches}
    told = ", ".join(f"{count} {condition}" for condition, count in counts.items())
    yield f"{printable(name)}: batches {batches[0].batch} to {batches[-1].batch}: {told}"
    if read is not None:
        parts = {
            "agree with a check sum": read.summed,
            "have none and have the right form": read.formed,
            "could only be read": read.unchecked,
        }
        said = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
        yield f"  {read.files} files were read, {read.bytes:,} bytes: {said or 'none is good'}"
    for each in batches:
        if each.missing:
            yield f"  batch {each.batch} is {each.condition}. {printable(each.missing)}: {each.reason}"
    if batches[-1].condition in ("damaged", "altered"):
        usable = [each.batch for each in batches if each.condition.startswith("restorable")]
        what = "put the file back, from a copy of it"
        if usable and job:  # of a directory there is nothing that goes back
            back = f"`ha checkpoint rewind {job} {shlex.quote(name)} --to {usable[-1]}`"
            what = f"{back} goes back to the newest batch that can be continued"
        bad = "goes on with what is there" if batches[-1].condition == "altered" else "does not start as it is"
        yield f"  it {bad}: {printable(what)}"
