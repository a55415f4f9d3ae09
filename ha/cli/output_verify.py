"""``ha output verify`` and ``repair``: whether what the outputs of a job have decided is there, and completing it."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import click

from ha.cli.context import Context, command, consent, needs, refusals_as_errors
from ha.cli.options import flag_option, lead_option, printable, yes_option
from ha.cli.output import batches_option, of_ledger, of_query, print_batches, target_of
from ha.cli.progress import progress
from ha.cli.state import silent
from ha.leadership.fenced_rename import FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs.folder import OutputFolder
from ha.outputs.job_outputs import EVERY, ids_of, outputs_of
from ha.outputs.layout import REGION
from ha.outputs.ledger import Gap
from ha.outputs.moving import MovedFiles, Moving
from ha.outputs.partitions import Partitions
from ha.outputs.reading import BatchCondition, JournalBatch, JournalOutput, JournalReader, unseen
from ha.spark.rewind.operated import led
from leader.errors import OutputLost
from leader.layout.names import OUT


@command()
@batches_option
@flag_option(
    "--read",
    "Also read all of each output with a Spark on this host, as its readers do, and compare the number of rows.",
    name="reads",
)
def verify(context: Context, job: str, name: str | None, batches: range | None, *, reads: bool) -> None:
    """Look for every file that the outputs of JOB have decided, and for every batch that Spark has committed.

    The job may be running. Exit with 1 if a file is missing, or has another length, if readers see one among those of
    a batch that was not decided, if Spark's readers see none of them, or if there is a gap: a batch that an output
    lacks, or has from another query; with --read also if Spark cannot read an output as a whole, or gets another
    number of rows than its writers have counted.

    """
    bad = 0
    if reads:
        needs("To read an output", "pyspark")
        if batches is not None:
            raise click.UsageError("Choose one of --batches and --read, which reads all of them.")

    def rows() -> Iterator[JournalBatch]:
        nonlocal bad
        reader, outputs = outputs_of(context.stores, job, name)
        for each in outputs:
            counts: Counter[str] = Counter()
            seen: list[JournalBatch] = []
            for row in _verified(context, job, reader, each, batches or EVERY):
                counts[row.condition] += 1
                bad += bool(row.missing or row.surplus) or row.condition in (
                    BatchCondition.UNKNOWN,
                    BatchCondition.UNSEEN,
                )
                seen += [row] if row.batch >= 0 else []
                if context.as_json or row.condition != BatchCondition.COMPLETE or row.accepted:
                    yield row
            for gap in _gaps(context, job, each, seen, whole=batches is None):
                bad += 1
                counts[BatchCondition.GAP] += 1
                yield JournalBatch(each.name, -1, BatchCondition.GAP, why=gap.why)
            if reads and (unread := _unread(context, job, reader, each, seen)):
                bad += 1
                counts[BatchCondition.UNREAD] += 1
                yield JournalBatch(each.name, -1, BatchCondition.UNREAD, why=unread)
            told = ", ".join(f"{count} {condition}" for condition, count in sorted(counts.items()))
            unread = f"; {printable(each.place)} was not read, only its journal" if each.place else ""
            context.tell(f"{each.name}: {told or 'no batch is decided'}{of_query(each)}{unread}")

    print_batches(rows(), context.as_json)
    if bad:
        click.get_current_context().exit(1)


def _verified(
    context: Context, job: str, reader: JournalReader, found: JournalOutput, batches: range
) -> Iterator[JournalBatch]:
    total = sum(len(ids) for ids in ids_of(reader, found, batches))
    with target_of(context, job, found) as target, progress(False, found.name, of_bytes=False) as told:
        if found.target and not found.place and (why := unseen(target)):
            yield JournalBatch(found.name, -1, BatchCondition.UNSEEN, why=why)
        for ids in ids_of(reader, found, batches):
            for done, row in enumerate(reader.verified(found, ids, target), 1):
                if told is not None:
                    told(done, total)
                yield row


def _unread(context: Context, job: str, reader: JournalReader, found: JournalOutput, rows: list[JournalBatch]) -> str:
    """Return why a reader of the whole output does not get what was published; empty if it does, or nobody can tell."""
    if not found.target or found.place or not found.format or found.regions:
        context.tell(f"{found.name}: not read: it is no directory of files whose format is known")
        return ""
    from ha.spark.outputs.row_writer import rows_of  # noqa: PLC0415  # loads PySpark
    from ha.spark.stored.stored_state import local_session  # noqa: PLC0415

    parts = urlsplit(context.stores.files.at(job))
    region = f"/{REGION}{found.name}" if any(found.name in each.regions for each in reader.outputs()) else ""
    uri = f"{parts.scheme}://{parts.netloc}{found.target}{region}"
    try:
        with silent(), local_session("ha output verify") as spark:
            read = rows_of(spark, uri, found.format)
    except ValueError as error:
        return f"Spark cannot read {uri} as a whole: {error}"
    published = sum(each.rows or 0 for each in rows)
    unknown = any(each.rows is None or each.condition != BatchCondition.COMPLETE for each in rows)
    came_since = sum(map(len, ids_of(reader, found, EVERY))) > len(rows)
    if not unknown and (read < published or (read > published and not came_since)):
        return f"its batches have {published:,} rows, and a reader of {uri} gets {read:,}"
    context.tell(f"{found.name}: a reader gets {read:,} rows" + ("; nobody has counted all of them" if unknown else ""))
    return ""


def _gaps(context: Context, job: str, found: JournalOutput, rows: list[JournalBatch], *, whole: bool) -> list[Gap]:
    """Compare an output with the checkpoint of its query, and the records of its batches with each other."""
    after, plans = {row.batch: row.after for row in rows}, {row.batch: row.plan for row in rows}
    home, thousands = found.folder.removeprefix(f"{OUT}/"), found.thousands if whole else ()
    return of_ledger(context, job, lambda books: books.whole(home, after, plans, thousands))


@command()
@flag_option("--accept-loss", "Complete a batch without the files that are gone; they are noted.")
@flag_option("--write-again", "If files are gone, undo the decision of a batch that has nothing in its place.")
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
