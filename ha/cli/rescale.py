"""``ha checkpoint rescale``: gives the state of a query another number of partitions."""

import shlex
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from ha.cli.context import Context, agreement, command, needs, refusals_as_errors
from ha.cli.options import lead_option, printable, yes_option
from ha.cli.progress import status
from ha.cli.state import silent
from ha.verbs.table import PUT_BACK

if TYPE_CHECKING:
    from ha.spark.checkpoint_tools.rescaling import Rescaled, RescaleOutlook

MOST = 100_000  # most partitions: each of them is a directory, and a task in every batch


@command()
@click.argument("job")
@click.argument("query")
@click.option(
    "--partitions",
    type=click.IntRange(1, MOST),
    required=True,
    metavar="N",
    help="The new number of state partitions, and so of the tasks that work on state.",
)
@click.option("--deep", is_flag=True, help="Compare all keys and values of the state by hashes, not only their number.")
@click.option(
    "--redo-begun",
    is_flag=True,
    help="If QUERY has begun a batch and not committed it: do it again, with the same input, under the number after "
    "the next one. Outputs of this package know it again; one that goes by Spark's numbers gets its rows twice.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done; JOB may be running.")
@yes_option
@lead_option
def rescale(context: Context, job: str, query: str, partitions: int, deep: bool, redo_begun: bool) -> None:
    """Give the state of QUERY in JOB another number of partitions.

    Spark freezes the number of partitions, spark.sql.shuffle.partitions, with the first batch of a query. Stop JOB
    first, best with `ha job stop JOB --savepoint`, and all processes that contend for it: this command leads JOB
    meanwhile. It starts a Spark on this host, which repartitions a copy of the checkpoint in RocksDB; keys are
    compared, and one rename swaps the two. The old one goes into the trash of JOB; `ha checkpoint rewind JOB QUERY
    --undo` brings it back.

    If it is interrupted, the query is as before, or rescaled as soon as anybody leads JOB; run the command again.
    """
    needs("A rescale", "pyspark", "pyarrow")
    from ha.spark.checkpoint_tools.rescaling import give_partitions  # noqa: PLC0415  # loads pyarrow and PySpark

    agree = agreement(context, partial(_outlook, job), partial(_check, job, redo_begun))
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
    lines = _done(job, query, partitions, done) if done else ()
    context.show(
        {**said, "trash": done.plan.trash if done else ""},
        "nothing was changed (--dry-run)" if context.dry_run else lines,
    )


def _done(job: str, query: str, partitions: int, done: "Rescaled") -> Iterator[str]:
    for each in done.states:
        same = "keys and values are the same" if each.hash is not None else "there are as many"
        yield f"operator {each.operator}, {printable(each.state)}: {each.keys} keys; {same}"
    yield (
        f"{job}: {query} has {partitions} state partitions; the former ones are in the trash ({done.plan.trash}); "
        f"{PUT_BACK.format(job=job, query=shlex.quote(query))}"
    )


def _check(job: str, redo_begun: bool, outlook: "RescaleOutlook") -> None:
    """Refuse what the user has to say first."""
    if outlook.begun and not redo_begun:
        raise click.UsageError(
            f"Query {outlook.query} has begun batch {outlook.batch + 1} and not committed it. Start the job once more "
            f"and stop it with `ha job stop {job} --savepoint`, which lets declared queries end "
            "their batch; or add "
            "--redo-begun, if its outputs are those of this package, or may get the rows of that batch twice."
        )


def _outlook(job: str, outlook: "RescaleOutlook") -> Iterator[str]:
    if outlook.is_there:
        yield f"{job}: {outlook.query} has {outlook.present} state partitions: there is nothing to do"
        return
    yield (
        f"{job}: {outlook.query} goes from {outlook.present} to {outlook.partitions} state partitions after "
        f"batch {outlook.batch}; {outlook.files} files, {outlook.bytes:,} bytes are copied"
    )
    if outlook.begun:
        yield f"batch {outlook.batch + 1}, which it has begun, is done again as batch {outlook.batch + 2}"
