"""``ha replica promote``: makes the replica of a job the job itself, where its own cluster is lost or is to be left."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ha.cli.context import Context, command, consent, needs, operator, refusals_as_errors
from ha.cli.options import printable, seconds_option, yes_option

if TYPE_CHECKING:
    from ha.spark.replication.promotion import Promotable, PromotionOutlook


@command()
@click.argument("job")
@click.option(
    "--old-files",
    metavar="URI",
    help="Root of JOB at the old side, if it can be reached: JOB is cancelled there first, and must not run again.",
)
@click.option("--replace", is_flag=True, help="Move checkpoints that JOB has here into its trash.")
@click.option("--dry-run", is_flag=True, help="Only say what JOB would resume from.")
@click.option("--force", is_flag=True, help="Even if JOB is seen to be led at the old side, and may run at both.")
@yes_option
@seconds_option(30.0, "Wait this long for the old side to stop, and for each lease.")
def promote(context: Context, job: str, old_files: str | None, replace: bool, force: bool) -> None:
    """Make the replica of JOB, below this root, the job: it resumes here from its newest complete batch.

    The replication ends: `ha replica run` finds the mark, and stops. Then start JOB here with `ha run`. Without
    --old-files it is refused while JOB is led at the old side, as far as that can be seen from here, and only sidecars
    with the setting replicate_to notice that JOB must not run there any more: see to it before that side comes back.

    It asks before it changes anything, for nothing undoes it.

    If it is interrupted, run it again: it resumes with the queries that are left. With --old-files it may be run again
    when the old side is back.
    """
    needs("Promoting", "pyarrow")
    from ha.spark.replication.promotion import Promotion  # noqa: PLC0415  # loads pyarrow

    with refusals_as_errors(changes=not context.dry_run):
        promotion = Promotion(context.stores, job, old_files, operator(), context.timeout)
        for said in promotion.look(replace=replace, dry_run=context.dry_run, force=force):
            click.echo(f"{job}: {printable(said)}", err=True)
        if not context.dry_run:
            for each in promotion.outlook.queries:
                context.tell(f"{job}: {printable(_sentence(each))}")
            consent(yes=context.yes)
            promotion.promote(replace=replace)
    outlook, fenced = promotion.outlook, promotion.fenced
    found = {"job": job, "source": outlook.source, "fenced": fenced, "incomplete": outlook.incomplete}
    context.show(
        {**found, "dry_run": context.dry_run, "queries": [_fields(each) for each in outlook.queries]},
        _lines(job, outlook, fenced, dry_run=context.dry_run),
    )


def _lines(job: str, outlook: "PromotionOutlook", fenced: str, *, dry_run: bool) -> Iterator[str]:
    for each in outlook.queries if dry_run else ():
        yield f"{job}: {printable(_sentence(each))}"
    for query in outlook.incomplete:
        yield f"{job}: {printable(query)} has no complete batch here: it starts from scratch"
    if dry_run:
        yield "nothing was changed (--dry-run)"
        return
    yield f"{job}: {fenced}" if fenced else f"{job}: the old side ({outlook.source}) is not told: keep it stopped"
    yield f"{job}: start it here with `ha run {job}`"


def _age(each: "Promotable") -> float | None:
    from ha.spark.replication.report import today  # noqa: PLC0415

    return max(0.0, today() - each.seen.level_at) if each.seen.level_at else None


def _sentence(each: "Promotable") -> str:
    """Return a sentence: where a query resumes, and which of its rows may be published twice."""
    batch, seen, age = each.closure.batch, each.seen, _age(each)
    said = f"{each.query} goes on after batch {batch}"
    if age is not None:
        said += f"; {age:.0f} s ago that was all that the old side had completed"
    newest = max(batch, -1 if seen.newest is None else seen.newest, -1 if seen.begun is None else seen.begun)
    if newest > batch:
        return f"{said}. It had begun batch {newest} when it was last seen: it may have published from {batch + 1} on"
    return f"{said}. What it has published since then is done again"


def _fields(each: "Promotable") -> dict[str, Any]:
    return {
        "query": each.query,
        "batch": each.closure.batch,
        "files": len(each.closure.files),
        "bytes": each.closure.bytes,
        "newest": each.seen.newest,
        "begun": each.seen.begun,
        "age": _age(each),
        "inputs": each.inputs,
    }
