"""``ha replica``: keeps a copy of a job's checkpoints on another file system, and makes it the job."""

import signal
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ha.cli.context import Context, command, consent, needs, operator, refusals_as_errors
from ha.cli.options import POSITIVE, flag_option, printable, seconds_option, value_option, yes_option
from ha.cli.progress import copying, waiting
from ha.views.ages import ago, at_time
from ha.views.leases import Leases, LeaseState, steady
from leader.job.admin import JobAdmin

if TYPE_CHECKING:
    from ha.spark.replication.promotion import Promotable, PromotionOutlook
    from ha.spark.replication.replicator import QueryRound
    from ha.spark.replication.report import ReplicaReport


@command()
@click.option("--to", metavar="URI", required=True, help="Root of the jobs at the other side: its setting `files`.")
@click.option("--query", "queries", multiple=True, metavar="QUERY", help="Only this query; may be repeated.")
@flag_option("--once", "End as soon as the replica has the newest batches.")
@seconds_option(1.0, "Time between two rounds.", "--interval")
@value_option("--rate", click.IntRange(1), "BYTES", "Move at most this many bytes in a second.  [default: no limit]")
@value_option(
    "--calls", POSITIVE, "N", "Ask the store of JOB at most this many times in a second.  [default: no limit]"
)
@value_option("--retain", click.IntRange(1), "N", "Keep what the newest N batches that were moved need.", default=10)
@click.option(
    "--metrics-file",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write metrics for Prometheus's node exporter into this file after each round.",
)
@flag_option("--quiet", "Say only what goes wrong.")
@flag_option("--again", "Begin once more after the replica was promoted.")
def replicate(
    context: Context,
    job: str,
    to: str,
    queries: tuple[str, ...],
    once: bool,
    interval: float,
    rate: int | None,
    calls: float | None,
    retain: int,
    metrics_file: str | None,
    quiet: bool,
    again: bool,
) -> None:
    """Keep a replica of the checkpoints of JOB below URI, on another file system.

    `ha replica promote` there makes it the job. This runs until it is interrupted. JOB may run and change its leader,
    and is only read. Of several processes that replicate JOB to URI one does so; the others wait to take over. If it
    is killed, start it again.
    """
    needs("Replicating", "pyarrow")
    from ha.spark.replication.replication import ReplicaRounds, check  # noqa: PLC0415  # loads pyarrow
    from ha.spark.replication.replicator import Budget  # noqa: PLC0415

    show = _Rounds(context, job, quiet=quiet)
    budget = Budget(calls, rate)
    replication = ReplicaRounds(
        context.stores, job, to, queries, retain, budget, done=show.done, complain=show.complain
    )
    replication.metrics_file = metrics_file
    with refusals_as_errors():
        check(context.stores, job, to)
        if once:
            with copying(context.as_json) as told:
                replication.once(again=again, told=told)
            return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # gives the lease back
    replication.run(interval, again=again)


class _Rounds:
    """Prints what the rounds of a replication have done, and each complaint once, however often it comes in a row."""

    def __init__(self, context: Context, job: str, *, quiet: bool) -> None:
        self._context, self._job, self._quiet = context, job, quiet
        self._told: dict[str, str] = {}
        self._complained = ""

    def complain(self, said: str) -> None:
        if said != self._complained:
            click.echo(f"{self._job}: {said}", err=True)
        self._complained = said

    def done(self, rounds: "list[QueryRound]") -> None:
        from ha.spark.replication.report import today  # noqa: PLC0415

        self._complained = ""
        for each in rounds:
            if self._context.as_json:
                if each.files or each.problem:
                    self._context.show({"job": self._job, "at": today(), **asdict(each)})
                continue
            said = _moved(each)
            if self._quiet:
                if each.problem and self._told.get(each.query) != said:
                    click.echo(f"{self._job}: {printable(said)}", err=True)
            elif each.files or each.problem or each.query not in self._told:
                click.echo(f"{self._job}: {printable(said)}")
            self._told[each.query] = said


def _moved(each: "QueryRound") -> str:
    batch = "has no batch yet" if each.batch is None else f"is at batch {each.batch}"
    if each.problem:
        return f"{each.query} {batch}. {each.problem}"
    if not each.files:
        return f"{each.query} {batch}: nothing to move"
    behind = (each.newest or 0) - (each.batch or 0)
    more = f", {behind} behind" if behind > 0 else ""
    anew = ", copied from scratch" if each.anew else ""
    moved = f"{each.files} files, {each.bytes:,} bytes, {each.calls} calls, {each.seconds:.1f} s"
    return f"{each.query} {batch}{more}: {moved}{anew}"


@command()
@click.option("--to", metavar="URI", required=True, help="Root of the jobs at the other side: its setting `files`.")
def status(context: Context, job: str, to: str) -> None:
    """Show how far the replica of JOB below URI was after the last round, and whether a process replicates it now."""
    needs("Replicating", "pyarrow")
    from ha.spark.replication.replication import check, report_of  # noqa: PLC0415  # loads pyarrow
    from ha.spark.replication.report import replica_of, today  # noqa: PLC0415

    with refusals_as_errors(changes=False), context.stores.open(to) as there:
        check(context.stores, job, to)
        admin = JobAdmin(there, None, context.stores.patience)
        ended, report = report_of(admin, job, to)
        lease = steady(lambda: Leases(context.stores, to).look(admin, replica_of(job))).lease
    now = today()
    rows = [
        {**msgspec.to_builtins(each), "behind": each.behind, "age": now - each.level_at if each.level_at else None}
        for each in report.queries
    ]
    context.show(
        {
            "job": job,
            "source": report.source,
            "at": report.at,
            "promoted": ended,
            "replicated": lease.held,
            "queries": rows,
        },
        _of_replica(
            f"{job}: replica of {report.source} as of {_when(lease, to, job, report, ended=ended)}", report, now
        ),
    )


def _when(lease: LeaseState, to: str, job: str, report: "ReplicaReport", *, ended: bool) -> str:
    written = ago(at_time(round(report.at * 1000)))
    if ended:
        return f"{written}, promoted"
    since = f" since {at_time(lease.changed_ms)}" if lease.changed_ms else ""
    left = f"; no process replicates it{since}: start `ha replica run {job} --to {to}`"
    return written if lease.held else f"{written}{left}"


def _of_replica(heading: str, report: "ReplicaReport", now: float) -> Iterator[str]:
    yield heading
    for each in report.queries:
        batch = "no batch" if each.batch is None else f"batch {each.batch}"
        level = f"had all {max(0.0, now - each.level_at):.0f} s ago" if each.level_at else "never had all"
        problem = f". {each.problem}" if each.problem else ""
        begun = f", batch {each.begun} begun" if (each.begun or 0) > (each.newest or 0) else ""
        yield f"  {printable(each.name)}  {batch}, {each.behind} behind then{begun}, {level}{printable(problem)}"


@command()
@click.option(
    "--old-files",
    metavar="URI",
    help="Root of JOB at the old side, if it can be reached: JOB is cancelled there first, and must not run again.",
)
@flag_option("--replace", "Move checkpoints that JOB has here into its trash.")
@flag_option("--dry-run", "Only say what JOB would resume from.")
@flag_option("--force", "Even if JOB is seen to be led at the old side, and may run at both.")
@yes_option
@seconds_option(30.0, "Wait this long for the old side to stop, and for each lease.")
def promote(context: Context, job: str, old_files: str | None, replace: bool, force: bool) -> None:
    """Make the replica of JOB, below this root, the job: it resumes here from its newest complete batch.

    Then start JOB here with `ha run`. Without --old-files it is refused while JOB is led at the old side, as far as
    that can be seen from here, and only sidecars with the setting replicate_to notice that JOB must not run there any
    more: see to it before that side comes back.

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
            with waiting(f"{job}: is promoted, or waits for the old side or a lease"):
                promotion.promote(replace=replace)
    outlook, fenced = promotion.outlook, promotion.fenced
    found = {"job": job, "source": outlook.source, "fenced": fenced, "incomplete": outlook.incomplete}
    context.show(
        {**found, "dry_run": context.dry_run, "queries": [_fields(each) for each in outlook.queries]},
        _promoted(job, outlook, fenced, dry_run=context.dry_run),
    )


def _promoted(job: str, outlook: "PromotionOutlook", fenced: str, *, dry_run: bool) -> Iterator[str]:
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
