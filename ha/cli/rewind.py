"""``ha checkpoint rewind``, ``seek`` and ``rescale``: a query gets another batch, other offsets, or more partitions."""

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from ha.cli.context import Context, agreement, command, needs, refusals_as_errors
from ha.cli.options import flag_option, lead_option, printable, yes_option
from ha.cli.progress import copying, status
from ha.cli.state import silent
from ha.verbs.table import PUT_BACK

if TYPE_CHECKING:
    from ha.spark.checkpoint_tools.rescaling import Rescaled, RescaleOutlook
    from ha.spark.checkpoint_tools.rewinding import RewindOutlook
    from ha.spark.checkpoint_tools.seeking import SeekMove, SeekOutlook
    from ha.spark.rewind.published import Concerned


_choice = click.option(
    "--outputs",
    "choice",
    type=click.Choice(["aside", "keep"]),
    help="What becomes of the batches that were published after it: they go into the trash, and their numbers are used "
    "again; or they stay, and their rows are published once more, under numbers after them.",
)

_dry_run = flag_option("--dry-run", "Only say what would be done; JOB may be running.")


@command()
@click.option("--to", type=click.IntRange(min=0), metavar="BATCH", help="The newest batch that QUERY has done then.")
@_choice
@flag_option("--undo", "Undo the last rewind; what QUERY has done since goes into the trash.")
@_dry_run
@yes_option
@lead_option
def rewind(context: Context, job: str, query: str, to: int | None, choice: str | None, undo: bool) -> None:
    """Put QUERY of JOB back to an earlier batch that Spark retains: it resumes with the next one.

    Stop all processes that contend for JOB first: this command leads JOB meanwhile. The present checkpoint goes into
    the trash of JOB; --undo brings it back. Batches that were published later go there as well, or stay: say which.

    If it is interrupted, the query is as before, or put back as soon as anybody leads JOB; run the command again.
    """
    needs("A rewind", "pyarrow")
    from ha.spark.checkpoint_tools.rewinding import put_back  # noqa: PLC0415  # loads pyarrow

    if undo == (to is not None):
        raise click.UsageError("Say where the query goes: --to BATCH, or --undo.")
    if undo and choice:
        raise click.UsageError("--undo knows the outputs: what they have published since goes into the trash.")
    asked = _Asked(job, to, choice)
    agree = agreement(context, partial(_outlook, asked), partial(_check, asked))
    with refusals_as_errors(changes=not context.dry_run), copying(context.as_json) as told:
        outlook, trash = put_back(
            context.stores,
            job,
            query,
            to,
            choice=choice or "aside",
            dry_run=context.dry_run,
            timeout=context.timeout,
            agree=agree,
            told=told,
        )
    said = {**msgspec.to_builtins(outlook), "choice": choice, "undo": undo, "dry_run": context.dry_run, "trash": trash}
    back = f"{job}: {query} is put back ({trash}); {PUT_BACK.format(job=job, query=shlex.quote(query))}"
    context.show(
        {"job": job, **said}, "nothing was changed (--dry-run)" if context.dry_run else [back] if trash else ()
    )


@command()
@click.option(
    "--to",
    required=True,
    metavar="TIME|OFFSETS",
    help="A time with its zone, earliest, latest, or the offsets of some partitions as Spark's startingOffsets has "
    'them: {"orders":{"0":120}}.',
)
@click.option("--kafka", required=True, metavar="BROKERS|FILE", help="Kafka's brokers, or the path of a file with the "
              "settings of a client, as librdkafka names them.")  # fmt: skip
@_choice
@_dry_run
@yes_option
@lead_option
def seek(context: Context, job: str, query: str, to: str, kafka: str, choice: str | None) -> None:
    """Let QUERY of JOB go on at other offsets of its Kafka topics, with its state kept.

    Stop all processes that contend for JOB first: this command leads JOB meanwhile. It shows what is skipped or read
    again. The present checkpoint goes into the trash of JOB; `ha checkpoint rewind JOB QUERY --undo` brings it back.

    If it is interrupted, the query is as before, or goes on there as soon as anybody leads JOB; run the command again.
    """
    needs("A seek", "pyarrow", "confluent_kafka")
    from ha.spark.checkpoint_tools.seeking import aimed, sought  # noqa: PLC0415  # loads pyarrow and Kafka's client

    def check(outlook: "SeekOutlook") -> None:
        _check(_Asked(job, outlook.batch, choice), outlook)

    agree = agreement(context, partial(_moves, job), check)
    with refusals_as_errors(changes=not context.dry_run), copying(context.as_json) as told:
        outlook, trash = sought(
            context.stores,
            job,
            query,
            aimed(to),
            kafka,
            choice=choice or "aside",
            dry_run=context.dry_run,
            timeout=context.timeout,
            agree=agree,
            told=told,
        )
    said = {"job": job, **msgspec.to_builtins(outlook), "choice": choice, "dry_run": context.dry_run, "trash": trash}
    undo = PUT_BACK.format(job=job, query=shlex.quote(query))
    done = [f"{job}: {query} goes on there ({trash}); {undo}"] if trash else ()
    context.show(said, "nothing was changed (--dry-run)" if context.dry_run else done)


def _moves(job: str, outlook: "SeekOutlook") -> Iterator[str]:
    if outlook.is_there:
        yield f"{job}: {outlook.query} goes on at these offsets: there is nothing to do"
        return
    copied = f"{outlook.files} files, {outlook.bytes:,} bytes are copied"
    yield f"{job}: {outlook.query} goes on after batch {outlook.batch} at other offsets; {copied}"
    for each in outlook.moves:
        yield f"{printable(each.topic)}, partition {each.partition}: {_move(each)}"
    if outlook.begun:
        yield f"batch {(outlook.batch or 0) + 1}, which it has begun, is given up: rows of it may be in other outputs"
    for said in outlook.outputs:
        yield f"{said.output}: {_batches(said)} of it, at {printable(said.target)}"
    if outlook.watermark:
        at = datetime.fromtimestamp(outlook.watermark / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        yield f"its watermark stays at {at}: what is older is late, also if it is read again"


def _move(each: "SeekMove") -> str:
    if each.after is None:
        return f"is gone from the topic, so {each.before} is forgotten"
    if each.before is None:
        return f"from {each.after} on, and was not read before"
    by = each.after - each.before
    what = f"{by} are skipped" if by > 0 else f"{-by} are read again" if by else "as before"
    return f"from {each.before} to {each.after}: {what} (it holds {each.first} to {each.end})"


class _Asked(NamedTuple):
    """A request to rewind; without a batch it is an undo."""

    job: str
    to: int | None
    choice: str | None


def _check(asked: _Asked, outlook: "RewindOutlook") -> None:
    """Refuse what the user has to say first."""
    if asked.to is not None and outlook.outputs and asked.choice is None:
        listed = "; ".join(f"{each.output}, {_batches(each)}" for each in outlook.outputs)
        raise click.UsageError(
            f"After batch {outlook.batch} these were published: {listed}. Say what becomes of them. With --outputs "
            "aside they go into the trash, and the replay is published under their numbers; with --outputs keep they "
            "stay, and the replay is published as well, under numbers after them."
        )


def _outlook(asked: _Asked, outlook: "RewindOutlook") -> Iterator[str]:
    if outlook.is_there:
        yield f"{asked.job}: {outlook.query} has come to batch {outlook.batch}: there is nothing to do"
        return
    now, then = ("no batch" if each is None else f"batch {each}" for each in (outlook.newest, outlook.batch))
    copied = "" if asked.to is None else f"; {outlook.files} files, {outlook.bytes:,} bytes are copied"
    yield f"{asked.job}: {outlook.query} goes from {now} to {then}{copied}"
    for each in outlook.outputs:
        size = f"{each.files} files, {each.bytes:,} bytes at {printable(each.target)}"
        yield f"{each.output}: {_batches(each)}, {size}{_meaning(asked, each)}"
    if outlook.inputs.gone:
        yield (
            f"{outlook.inputs.gone} of the {outlook.inputs.read} files that it has read since are gone, as "
            f"{printable(outlook.inputs.first)}: their rows do not come again, so put the files back, or take "
            "--outputs keep"
        )
    if outlook.inputs.unknown:
        yield f"{outlook.inputs.unknown} of the {outlook.inputs.read} files that it has read since cannot be looked for"
    if outlook.inputs.unread:
        yield f"not all files that it has read since are known: {printable(outlook.inputs.unread)} cannot be read"
    if outlook.readers and outlook.outputs:
        yield (
            f"{', '.join(map(printable, outlook.readers))}: reads what {outlook.query} writes, and will get rows once "
            "more, unless it is put back to before it has read them"
        )


def _meaning(asked: _Asked, each: "Concerned") -> str:
    if asked.to is None:
        return ": published since, so they go into the trash"
    if asked.choice is None:
        return ""
    if asked.choice == "aside":
        return ": they go into the trash, and the replay is published under their numbers"
    return f": they stay, and the replay is published as well, from number {each.last + 1} on"


def _batches(each: "Concerned") -> str:
    return f"batch {each.first}" if each.first == each.last else f"batches {each.first} to {each.last}"


MOST = 100_000  # most partitions: each of them is a directory, and a task in every batch


@command()
@click.option(
    "--partitions",
    type=click.IntRange(1, MOST),
    required=True,
    metavar="N",
    help="The new number of state partitions, and so of the tasks that work on state.",
)
@flag_option("--deep", "Compare all keys and values of the state by hashes, not only their number.")
@flag_option(
    "--redo-begun",
    "If QUERY has begun a batch and not committed it: do it again, with the same input, under the number after "
    "the next one. Outputs of this package know it again; one that goes by Spark's numbers gets its rows twice.",
)
@_dry_run
@yes_option
@lead_option
def rescale(context: Context, job: str, query: str, partitions: int, deep: bool, redo_begun: bool) -> None:
    """Give the state of QUERY in JOB another number of partitions.

    Stop JOB first, best with `ha job stop JOB --savepoint`, and all processes that contend for it: this command leads
    JOB meanwhile. It starts a Spark on this host, which repartitions a copy of the checkpoint in RocksDB; keys are
    compared, and one rename swaps the two. The old one goes into the trash of JOB; `ha checkpoint rewind JOB QUERY
    --undo` brings it back.

    If it is interrupted, the query is as before, or rescaled as soon as anybody leads JOB; run the command again.
    """
    needs("A rescale", "pyspark", "pyarrow")
    from ha.spark.checkpoint_tools.rescaling import give_partitions  # noqa: PLC0415  # loads pyarrow and PySpark

    agree = agreement(context, partial(_rescale_outlook, job), partial(_check_begun, job, redo_begun))
    with refusals_as_errors(changes=not context.dry_run):
        outlook, done = give_partitions(
            context.stores,
            job,
            query,
            partitions,
            deep=deep,
            dry_run=context.dry_run,
            timeout=context.timeout,
            agree=agree,
            working=lambda: status(context.as_json, "looking", silent),
        )
    states = [msgspec.to_builtins(each) for each in done.states] if done else []
    said = {"job": job, **msgspec.to_builtins(outlook), "dry_run": context.dry_run, "states": states}
    lines = _rescaled(job, query, partitions, done) if done else ()
    context.show(
        {**said, "trash": done.plan.trash if done else ""},
        "nothing was changed (--dry-run)" if context.dry_run else lines,
    )


def _rescaled(job: str, query: str, partitions: int, done: "Rescaled") -> Iterator[str]:
    for each in done.states:
        same = "keys and values are the same" if each.hash is not None else "there are as many"
        yield f"operator {each.operator}, {printable(each.state)}: {each.keys} keys; {same}"
    yield (
        f"{job}: {query} has {partitions} state partitions; the former ones are in the trash ({done.plan.trash}); "
        f"{PUT_BACK.format(job=job, query=shlex.quote(query))}"
    )


def _check_begun(job: str, redo_begun: bool, outlook: "RescaleOutlook") -> None:
    """Refuse what the user has to say first."""
    if outlook.begun and not redo_begun:
        raise click.UsageError(
            f"Query {outlook.query} has begun batch {outlook.batch + 1} and not committed it. Start the job once more "
            f"and stop it with `ha job stop {job} --savepoint`, which lets declared queries end "
            "their batch; or add "
            "--redo-begun, if its outputs are those of this package, or may get the rows of that batch twice."
        )


def _rescale_outlook(job: str, outlook: "RescaleOutlook") -> Iterator[str]:
    if outlook.is_there:
        yield f"{job}: {outlook.query} has {outlook.present} state partitions: there is nothing to do"
        return
    yield (
        f"{job}: {outlook.query} goes from {outlook.present} to {outlook.partitions} state partitions after "
        f"batch {outlook.batch}; {outlook.files} files, {outlook.bytes:,} bytes are copied"
    )
    if outlook.begun:
        yield f"batch {outlook.batch + 1}, which it has begun, is done again as batch {outlook.batch + 2}"
