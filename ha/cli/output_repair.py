"""``ha output repair``: completes the batches that were decided and are not complete."""

import contextlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import click

from ha.cli.context import Context, command, consent, refusals_as_errors
from ha.cli.options import lead_option, yes_option
from ha.leadership.fenced_rename import FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs.folder import OutputFolder
from ha.outputs.job_outputs import outputs_of
from ha.outputs.moving import MovedFiles, Moving
from ha.outputs.partitions import Partitions
from ha.outputs.reading import BatchCondition, JournalOutput
from ha.spark.rewind.operated import led
from leader.errors import OutputLost


@command()
@click.argument("job")
@click.argument("name", metavar="[OUTPUT]", required=False)
@click.option("--accept-loss", is_flag=True, help="Complete a batch without the files that are gone; they are noted.")
@click.option(
    "--write-again", is_flag=True, help="If files are gone, undo the decision of a batch that has nothing in its place."
)
@yes_option
@lead_option
def repair(context: Context, job: str, name: str | None, accept_loss: bool, write_again: bool) -> None:
    """Complete the batches of JOB that were decided and are not complete. No process may contend for JOB.

    Nothing of a batch is moved if files of it are gone, unless --accept-loss says so: then exit with 1. First restore
    them, from a snapshot or the trash of the file system. It asks before it does what nothing undoes.
    """
    if accept_loss and write_again:
        raise click.UsageError("Choose one of --accept-loss and --write-again.")
    _, outputs = outputs_of(context.stores, job, name)
    broken = [each for each in outputs if each.unfinished and each.target]
    done: list[dict[str, object]] = []
    if broken:
        consent(yes=context.yes or not (accept_loss or write_again))
        with refusals_as_errors(), led(context.stores, job, context.timeout) as leadership:
            for each in broken:
                done.extend(_repaired(leadership, each, accept_loss=accept_loss, write_again=write_again))
    lines = [f"{row['output']}: batch {row['batch']} is {row['result']}: {row['text']}" for row in done]
    context.show(done, lines or f"{job}: every batch that was decided is complete")
    if any(row["result"] == BatchCondition.LOST for row in done):
        click.get_current_context().exit(1)


def _repaired(
    leadership: Leadership, found: JournalOutput, *, accept_loss: bool, write_again: bool
) -> Iterator[dict[str, object]]:
    if found.place:
        text = f"{found.place} gets it when the job starts: only its program can write there"
        for batch in found.unfinished:
            yield {"output": found.name, "batch": batch, "result": BatchCondition.UNFINISHED, "text": text}
        return
    parts = urlsplit(leadership.directory)
    with contextlib.closing(FencedRename(leadership, f"{parts.scheme}://{parts.netloc}{found.target}")) as renames:
        folder = OutputFolder(renames, f"{renames.inside}/{found.folder}", found.name)
        partitions = Partitions(folder)
        kept = partitions.load(make=False)
        moving = Moving(folder, partitions.note if kept else None, flat=found.flat)
        for batch in found.unfinished:
            result, text = _repair(moving, batch, accept_loss=accept_loss, write_again=write_again)
            yield {"output": found.name, "batch": batch, "result": result, "text": text}


def _repair(moving: Moving, batch: int, *, accept_loss: bool, write_again: bool) -> tuple[str, str]:
    try:
        return "complete", _said(moving.finish(batch))
    except OutputLost as lost:
        if write_again:
            moving.withdraw(batch)
            return "undecided", "nothing of it was in its place, and the query writes it again when the job starts"
        if not accept_loss:
            return BatchCondition.LOST, f"{lost}"
        if not lost.files:
            moving.record_anew(batch)
        return "complete", _said(moving.finish(batch, accept_loss=True))


def _said(moved: MovedFiles) -> str:
    given_up = f", {moved.failed} given up" if moved.failed else ""
    return f"{moved.created} files: {moved.renamed} moved, {moved.ignored} in place before{given_up}"
