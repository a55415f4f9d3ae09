"""The verbs that show jobs: ``ha job list``, ``show``, ``queries``, ``exceptions``, ``history`` and ``logs``."""

import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from ha.cli.context import Context, cell, command, table
from ha.cli.options import flag_option, printable
from ha.program import output_log
from ha.views import queries as views
from ha.views.ages import ago
from ha.views.jobs import JobSummary, summaries, summary
from ha.views.leases import Leases
from ha.views.records import FailureRow, failures, grants
from ha.views.remarks import remarks
from ha.views.story import JobStory, story
from leader.errors import LeaderError
from leader.job.status import Status
from leader.layout.names import check_job
from store.clock import BOOT_CLOCK
from store.errors import StoreError

LOOK_EVERY_S = 2.0

COLUMNS = ("JOB", "STATE", "EPOCH", "LEASE", "HOLDER", "CONTENDERS")
WIDE = ("SINCE", "LAST BATCH", "ROWS/S")


def shown_as(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a look: how it is printed, and whether it is repeated."""
    watch = click.option("-w", "--watch", is_flag=True, help="Print it again whenever it changes, until interrupted.")
    form = click.option("-o", "--output", "form", type=click.Choice(["json", "wide"]), help="Print JSON, or more.")
    return watch(form(function))


@command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([each.value for each in Status], case_sensitive=False),
    help="Only jobs in this state; may be repeated.",
)
@shown_as
def list_jobs(context: Context, states: tuple[str, ...], form: str | None, watch: bool) -> None:
    """List all jobs: state, epoch, mode and holder of the lease, and all contenders.

    Below: what is wrong with a job, or keeps it. `ha job show JOB` tells all of one job.
    """

    def look(leases: Leases) -> tuple[object, Iterable[str]]:
        rows = [each for each in summaries(context.admin, leases) if not states or each.state in states]
        if not rows and not states:
            click.echo(f"There is no job under {context.stores.files.uri}. {context.where()}", err=True)
        return rows, _listed(rows, leases.silence, wide=form == "wide")

    _show(context, look, form, watch=watch)


@command()
@shown_as
def show(context: Context, job: str, form: str | None, watch: bool) -> None:
    """Tell what is known of JOB on one screen: state, leader, batches, standbys, the last failure, what can be done.

    Exit with 3 if there is no such job.
    """

    def look(leases: Leases) -> tuple[object, Iterable[str]]:
        found = story(context.admin, job, leases)
        facts = _facts(found, leases.silence, wide=form == "wide")
        return found, (f"{name:<10}  {printable(said)}".rstrip() for name, said in facts)

    _show(context, look, form, watch=watch)


def _show(
    context: Context, look: Callable[[Leases], tuple[object, Iterable[str]]], form: str | None, *, watch: bool
) -> None:
    context.as_json = context.as_json or form == "json"
    before: Any = None
    while True:
        try:
            found, lines = look(Leases(context.stores))
        except StoreError as error:
            if before is None:
                raise
            found, lines = f"{error}", [f"ha: {error}"]
        if found != before:
            if before is not None and not context.as_json:
                click.echo()
            context.show(found, lines)
        if not watch:
            return
        before = found
        BOOT_CLOCK.sleep(LOOK_EVERY_S)


def _listed(rows: list[JobSummary], silence: str, *, wide: bool) -> Iterator[str]:
    cells = []
    for row in rows:
        contenders = "?" if row.contenders is None else row.contenders
        more = (row.since, row.checkpoint_at, row.rows_per_second) if wide else ()
        cells.append((row.job, row.state or "?", str(row.epoch), row.lease, row.holder, contenders, *more))
    yield from table(COLUMNS + (WIDE if wide else ()), cells)
    for row in rows:
        yield from (f"{row.job}: {printable(said)}" for said in remarks(row))
    if silence and rows:
        yield f"CONTENDERS are not known without ZooKeeper: {silence}."


def _facts(found: JobStory, silence: str, *, wide: bool) -> Iterator[tuple[str, str]]:
    row = found.glance
    yield row.job, row.state or "its state is not known to this version"
    if row.holder is not None:
        since = f" since {ago(found.led_since)}, reason: {found.reason}" if found.led_since else ""
        yield "leader", f"{row.holder}, epoch {row.epoch}{since}, lease by {row.lease}"
    else:
        yield "leader", f"none, {row.lease}; the last epoch was {row.epoch}"
    if found.endpoints:
        yield "endpoints", " ".join(f"{name}={where}" for name, where in sorted(found.endpoints.items()))
    if (stored := found.program) is not None:
        by = f"version {stored.version}, stored by {stored.by or '?'} at {stored.at}"
        yield "program", f"{by}: {' '.join(stored.command)}" if wide else by
    else:
        yield "program", "none is stored: each sidecar runs a command of its own"
    if row.program:
        yield "runs", row.program
    if (hour := row.last_hour) is not None:
        yield "last hour", f"failures: {hour.failures}, takeovers: {hour.takeovers}"
    for each in found.batches:
        rows = f", {each.rows_per_second:,.1f} rows/s" if each.rows_per_second is not None else ""
        more = f", {cell(each.rows)} rows in {cell(each.duration_ms)} ms, state rows {cell(each.state_rows)}"
        yield "batch", f"{each.batch} of {each.query}{rows}{more if wide else ''}"
    yield "completed", f"the newest batch at {ago(row.checkpoint_at)}" if row.checkpoint_at else "no batch so far"
    if found.standbys is None:
        yield "standbys", f"not known without ZooKeeper: {silence}"
    else:
        yield "standbys", " ".join(found.standbys) or "none: no process takes over"
    for request in found.requests:
        yield "request", f"{request.verb} by {request.by or '?'} is {request.state} ({request.id}) {request.said}"
    yield from (("under way", each) for each in found.under_way)
    if found.last_failure is not None:
        yield "failure", _failure(found.last_failure)
    yield from (("note", each) for each in found.said)
    yield from (("you can", each) for each in found.possible)


def _failure(failure: FailureRow) -> str:
    query = f", query {failure.query}" if failure.query else ""
    said = next(iter(failure.message.splitlines()), "")
    return f"{failure.at or '?'} on {failure.host or '?'}, epoch {failure.epoch}{query}: {failure.kind}: {said}"


_OF_QUERIES = ("query", "state", "region", "restarts", "reads", "writes", "run_id", "error")
_QUERIES = ("QUERY", "STATE", "REGION", "RESTARTS", "READS", "WRITES", "RUN ID", "LAST ERROR")


@command()
def queries(context: Context, job: str) -> None:
    """Show the queries that JOB has declared with ha.spark.Job: state, region, restarts, last error.

    Exit with 3 if there is no such job.
    """
    found = views.queries(context.admin, job, context.leases)
    context.show(found, _declared(job, found))


def _declared(job: str, found: views.Queries) -> Iterator[str]:
    if not found.queries:
        now = "" if found.led else ", and nobody leads it now"
        yield f"{job}: no program of it has declared queries with ha.spark.Job so far{now}."
        return
    if not found.led or found.states_of_epoch != found.epoch:
        now = f"epoch {found.epoch} has not shown any yet" if found.led else "there is no leader now"
        yield f"{job}: these are the last states of epoch {found.states_of_epoch or '-'}; {now}."
    rows = [[getattr(row, name) for name in _OF_QUERIES] for row in found.queries]
    yield from table(_QUERIES, rows, right=("REGION", "RESTARTS"))


@command()
def exceptions(context: Context, job: str) -> None:
    """Print the newest failures of JOB, oldest first: time, host, epoch, query, class and message.

    Below each are its trace and, of a program that did not answer, the stacks of its threads. A job's failures stay
    when its leader changes; the last 20 are kept.
    """
    found = failures(context.admin, job)
    context.show(found, _failures(found) if found else f"{job}: no failure is known")


def _failures(found: Iterable[FailureRow]) -> Iterator[str]:
    for each in found:
        yield "  ".join(map(cell, (each.at, each.host, each.epoch, each.query, each.kind)))
        for text in filter(None, (each.message, each.trace, each.dump)):
            yield from (f"    {printable(line)}".rstrip() for line in text.splitlines())


@command("history")
def show_history(context: Context, job: str) -> None:
    """Print the grants of JOB, oldest first: time, epoch, contender, why it got the lease, and how it ended.

    At last come the operator who asked for that, and the contender that took it up after its sidecar had been killed.
    A dash stands for what is not over yet, "unrecorded" for what no leader has written down.
    """
    rows = msgspec.to_builtins(grants(context.admin, job))
    context.show(rows, _grant_lines(rows))


def _grant_lines(rows: Iterable[dict[str, object]]) -> Iterator[str]:
    for row in rows:
        by, adopted = row.pop("by"), row.pop("adopted_by")
        further = [f"by {by}"] * bool(by) + [f"adopted by {adopted}"] * bool(adopted)
        yield "  ".join([*map(cell, row.values()), *further])


FOLLOW_EVERY_S = 0.2


@command()
@flag_option("--previous", "Of the run before.")
@click.option("--lines", "-n", type=click.IntRange(min=0), help="Only so many of the last lines.  [default: all]")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written from now on, until interrupted.")
def logs(context: Context, job: str, previous: bool, lines: int | None, follow: bool) -> None:
    """Print what the command of JOB has written on this host: standard output and error of its newest run.

    The last five runs are kept, of each the newest 8 to 16 MiB, as this user's sidecars have started them.
    """
    runs = output_log.runs(check_job(job))
    if len(runs) <= previous:
        raise LeaderError(_elsewhere(context, job, previous=bool(runs)))
    path = runs[-2 if previous else -1]
    click.echo(f"{job}: {path}", err=True)
    for part in output_log.parts(path) if lines is None else ():
        with part.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
    if lines:
        with path.open("rb") as file:
            sys.stdout.buffer.writelines(deque(file, lines))
    sys.stdout.buffer.flush()
    if follow:
        _follow(path)


def _elsewhere(context: Context, job: str, *, previous: bool) -> str:
    if previous:
        return f"Only one run of {job!r} is kept on this host."
    holder = summary(context.admin, job, context.leases).holder
    where = f"{holder} leads it: run this on that host, as the user of its sidecar" if holder else "It has no leader"
    where += f", or ask a process there that serves HTTP, at /api/v1/jobs/{job}/logs" if holder else ""
    return f"No run of {job!r} is kept on this host, in {output_log.folder(job)}. {where}."


def _follow(path: Path) -> None:
    """Copy what comes, also into the next part of the log."""
    file = path.open("rb")
    file.seek(0, 2)
    while True:
        _copied(file)
        if not os.path.samestat(path.stat(), os.fstat(file.fileno())):
            _copied(file)
            file.close()
            file = path.open("rb")
        time.sleep(FOLLOW_EVERY_S)


def _copied(file: BinaryIO) -> None:
    shutil.copyfileobj(file, sys.stdout.buffer)
    sys.stdout.buffer.flush()
