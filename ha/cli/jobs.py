"""``ha job list`` and ``ha job show``: all jobs at a glance, and all that is known of one."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from ha.cli.context import Context, cell, command, table
from ha.cli.options import printable
from ha.views.ages import ago
from ha.views.jobs import JobSummary, summaries
from ha.views.leases import Leases
from ha.views.records import FailureRow
from ha.views.remarks import remarks
from ha.views.story import JobStory, story
from leader.job.status import Status
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

    Below: which job no process leads, since when, and who takes over; who has paused it; which contenders are barred
    from it, because their host is drained; when a job that keeps failing is tried again; and how many of its queries
    are not guarded. `ha job show JOB` tells all of one job.
    """

    def look(leases: Leases) -> tuple[object, Iterable[str]]:
        rows = [each for each in summaries(context.admin, leases) if not states or each.state in states]
        if not rows and not states:
            click.echo(f"There is no job under {context.stores.files.uri}. {context.where()}", err=True)
        return rows, _listed(rows, leases.silence, wide=form == "wide")

    _show(context, look, form, watch=watch)


@command()
@click.argument("job")
@shown_as
def show(context: Context, job: str, form: str | None, watch: bool) -> None:
    """Tell what is known of JOB on one screen: state, leader, batches, standbys, the last failure, what can be done.

    Exit with 3 if there is no such job. What the leader's process itself knows is in `ha host status JOB` on its host.
    """

    def look(leases: Leases) -> tuple[object, Iterable[str]]:
        found = story(context.admin, job, leases)
        return found, _told(found, leases.silence, wide=form == "wide")

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


def _told(found: JobStory, silence: str, *, wide: bool) -> Iterator[str]:
    for name, said in _facts(found, silence, wide=wide):
        yield f"{name:<10}  {printable(said)}".rstrip()


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
