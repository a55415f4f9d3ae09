"""``ha promote``: makes the replica of a job the job itself, where its own cluster is lost or is to be left."""

import contextlib
import json
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from ha.checkpoints.inputs import bound
from ha.cli.adopt_export import led, refusals_as_errors
from ha.cli.operate import operator
from ha.cli.options import Seconds, json_option, printable, settings, stores
from ha.config.sources import known_groups
from ha.config.stores import Stores
from ha.groups.placement.place import SEPARATOR
from ha.sidecar.operator_requests import CANCEL
from ha.views.requests import ask
from leader.errors import NoLeader, NotLeader
from leader.job.admin import JobAdmin, attempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import JobStatus, Status
from leader.layout.lease import Mode
from store.clock import BOOT_CLOCK, now
from store.errors import Conflict, Invalid, StoreError
from store.open import normal

if TYPE_CHECKING:
    from ha.spark.replication.promoting import Outlook, Promotable

POLL_S = 0.5
"""Seconds between two looks whether the old side has stopped."""


@click.command()
@click.argument("job")
@click.option(
    "--old-files",
    metavar="URI",
    help="Root of JOB at the old side, if it can be reached: JOB is cancelled there first, and must not run again.",
)
@click.option("--replace", is_flag=True, help="Move checkpoints that JOB has here into its trash.")
@click.option("--dry-run", is_flag=True, help="Only say what JOB would go on from.")
@click.option(
    "--timeout",
    type=Seconds(),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the old side to stop, and for each lease.",
)
@json_option
@stores
def promote(
    job: str,
    old_files: str | None,
    replace: bool,
    dry_run: bool,
    timeout: float,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Make the replica of JOB, below this root, the job: it goes on here from its newest complete batch.

    The replication ends: `ha replicate` finds the mark, and stops. Then start JOB here with `ha run`. Without
    --old-files only sidecars with the setting replicate_to notice at the old side that JOB must not run there any more:
    see to it before that comes back.

    If it is interrupted, run it again: it goes on with the queries that are left. With --old-files it may be run once
    more when the old side is back.
    """
    if find_spec("pyarrow") is None:
        raise click.UsageError("Promoting needs pyarrow: pip install 'hybrid-ha[spark]'.")
    from ha.spark.replication import marks, promoting  # noqa: PLC0415  # loads pyarrow

    opening = contextlib.closing(Stores(settings(files=files, zookeeper=zookeeper)))
    with refusals_as_errors(changes=not dry_run), opening as opened:
        admin = JobAdmin(opened.files, None, opened.timing.call_timeout)

        def look() -> "tuple[FencedDirectory, Outlook]":
            found = _replica(admin, job)
            return found, promoting.look(opened.files, found)

        replica, outlook = attempts()(look)  # a replicator may take over meanwhile
        _check_group(opened, job, [outlook.source.removesuffix(f"/{job}"), old_files or ""])
        if old_files is not None and not outlook.queries and marks.promoted(replica) and not dry_run:
            _say(job, outlook, _fence(opened, job, old_files, timeout), dry_run=False, as_json=as_json)
            return
        with contextlib.suppress(NoLeader):  # the usual case: there is no such job here yet
            promoting.check(admin.directory(job), outlook, replace=replace)
        if not outlook.queries:
            raise Invalid("The replica has no complete batch of any query, or was promoted before.")
        for said in bound({each.query: each.inputs for each in outlook.queries}, opened.files.uri):
            click.echo(f"{job}: {printable(said)}", err=True)
        fenced = ""
        if not dry_run:
            if old_files is not None:
                fenced = _fence(opened, job, old_files, timeout)
            outlook = _promote(opened, admin, job, timeout, files, zookeeper, replace=replace)
    _say(job, outlook, fenced, dry_run=dry_run, as_json=as_json)


def _check_group(opened: Stores, job: str, others: Iterable[str]) -> None:
    """Refuse to make a job at a root whose group has it at another one: both would claim to be the job.

    Raises:
        Invalid: that is so; the message names the command that moves it.
    """
    from ha.spark.replication.report import replica_of  # noqa: PLC0415

    here = opened.files.at(replica_of(job)).removesuffix(f"/{replica_of(job)}")
    for roots in known_groups():
        with opened.open(SEPARATOR.join(roots)) as group:
            known = frozenset(group.uri.split(SEPARATOR))
        other = next((each for each in map(normal, filter(None, others)) if each in known and each != here), "")
        if here in known and other:
            raise Invalid(
                f"{here} and {other} are roots of one group, and a job lies at one of them only: `ha move {job} --to "
                f"{here}` moves it."
            )


def _replica(admin: JobAdmin, job: str) -> FencedDirectory:
    from ha.spark.replication.report import replica_of  # noqa: PLC0415

    try:
        return admin.directory(replica_of(job))
    except NoLeader as error:
        raise NoLeader(f"There is no replica of job {job!r} here: `ha replicate {job} --to URI` makes one.") from error


def _promote(
    opened: Stores,
    admin: JobAdmin,
    job: str,
    timeout: float,
    files: str | None,
    zookeeper: str | None,
    *,
    replace: bool,
) -> "Outlook":
    """Lead the replica and the job, and move the queries from one into the other."""
    from ha.spark.replication import marks, promoting  # noqa: PLC0415
    from ha.spark.replication.report import replica_of  # noqa: PLC0415

    attempts()(lambda: marks.mark(_replica(admin, job)))
    with contextlib.suppress(NoLeader, StoreError):  # nobody replicates, or its leader finds the mark
        admin.ask_to_hand_over(replica_of(job))
    with (
        led(replica_of(job), timeout, files, "", "promoted") as replica,
        led(job, timeout, files, zookeeper, "promoted") as leadership,
    ):
        directory = admin.directory(replica.job, replica.own.leader)
        marks.mark(directory)  # a replicator that has begun again meanwhile has taken it away
        outlook = promoting.look(opened.files, directory)
        promoting.check(leadership.own, outlook, replace=replace)
        for each in outlook.queries:
            promoting.move_in(opened.files, directory, leadership, each)
        promoting.begin(leadership.own)
    return outlook


def _fence(opened: Stores, job: str, old_files: str, timeout: float) -> str:
    """Cancel the job at the old side: its leader does so, or the next one finds that before it runs anything.

    Raises:
        LeaderError: it could not be done.
        StoreError: the old side does not answer.
    """
    with opened.open(old_files) as old:
        if old.uri.rstrip("/") == opened.files.uri.rstrip("/"):
            raise Invalid("--old-files is the root of this side: give that of the side that is left.")
        admin = JobAdmin(old, None, opened.timing.call_timeout)
        if admin.lease(job)[1].mode is not Mode.RELEASED:
            with contextlib.suppress(NoLeader):  # it has just given the lease back
                ask(admin, job, CANCEL, None, operator())
            end = now() + timeout
            while now() < end:
                if _status(admin, job).globally_terminal:
                    return f"{old.uri} is stopped, and must not run again"
                BOOT_CLOCK.sleep(POLL_S)
        _cancel(admin, job)
        released = admin.lease(job)[1].mode is Mode.RELEASED
    if released:
        return f"{old.uri} must not run again"
    return f"{old.uri} must not run again; its leader has not answered in {timeout:g} s: see that it does not run"


def _status(admin: JobAdmin, job: str) -> Status:
    with contextlib.suppress(NotLeader):  # another leader has begun
        return JobStatus(admin.directory(job)).read()
    return Status.RUNNING


def _cancel(admin: JobAdmin, job: str) -> None:
    """Write that the job is canceled: the next leader sees this before it runs its command."""
    status = JobStatus(admin.directory(job))
    for new in (Status.CANCELLING, Status.CANCELED):
        if (found := status.read()).allows(new) and not found.globally_terminal:
            status.change(found, new)
    if not (found := status.read()).globally_terminal:
        raise Conflict(f"Job {job!r} at the old side is {found.value}, and could not be cancelled: try again.")


def _say(job: str, outlook: "Outlook", fenced: str, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        said = {"job": job, "source": outlook.source, "fenced": fenced, "incomplete": outlook.incomplete}
        click.echo(json.dumps({**said, "dry_run": dry_run, "queries": [_fields(each) for each in outlook.queries]}))
        return
    for each in outlook.queries:
        click.echo(f"{job}: {printable(_sentence(each))}")
    for query in outlook.incomplete:
        click.echo(f"{job}: {printable(query)} has no complete batch here: it begins anew")
    if dry_run:
        click.echo("nothing was changed (--dry-run)")
        return
    click.echo(f"{job}: {fenced}" if fenced else f"{job}: the old side ({outlook.source}) is not told: keep it stopped")
    click.echo(f"{job}: start it here with `ha run {job}`")


def _age(each: "Promotable") -> float | None:
    from ha.spark.replication.report import today  # noqa: PLC0415

    return max(0.0, today() - each.seen.level_at) if each.seen.level_at else None


def _sentence(each: "Promotable") -> str:
    """Say from where a query goes on, and what of its output may be published twice."""
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
