"""``ha sweep``: moves what no retained batch can refer to into the trash, and back."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ha.cli.adopt_export import lead_option, led, refusals_as_errors
from ha.cli.options import json_option, printable, settings, stores
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.swept_files import SweptFiles
from leader.layout.lease import Mode

if TYPE_CHECKING:
    from ha.checkpoints.sweeping import JobSweep, Sweepable

DAY_MS = 86_400_000.0


@click.command()
@click.argument("target", metavar="JOB|URI")
@click.option("--dry-run", is_flag=True, help="Only say what would be moved.")
@click.option("--undo", is_flag=True, help="Put back what the last sweep has moved.")
@click.option(
    "--remove",
    "removed",
    multiple=True,
    metavar="QUERY",
    help="Also move the whole checkpoint of a query that JOB has no more; may be repeated. No process may lead JOB.",
)
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="DAYS",
    help="At a URI: only what was written this long before the newest file. With 0 no query may run there.",
)
@click.option(
    "--alone",
    is_flag=True,
    help="Lead JOB meanwhile even if its last leader has not given the lease back: nothing of JOB runs any more.",
)
@lead_option
@json_option
@stores
def sweep(
    target: str,
    dry_run: bool,
    undo: bool,
    removed: tuple[str, ...],
    older_than: float,
    alone: bool,
    timeout: float,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Move what no retained batch can refer to into the trash: of the queries of JOB, or of the checkpoint at URI.

    That is: temporary files, versions of state that were never committed, and tables that no snapshot names; of JOB
    also unfinished copies, and directories of fenced leaders. JOB may be running: then only what was written before
    its leader began. If its last leader has given the lease back, this command leads JOB meanwhile, and moves all.
    """
    if find_spec("pyarrow") is None:
        raise click.UsageError("Sweeping needs pyarrow: pip install 'hybrid-ha[spark]'.")
    opening = contextlib.closing(Stores(settings(files=files, zookeeper=zookeeper)))
    with refusals_as_errors(changes=not dry_run), opening as opened:
        if "://" in target:
            if removed:
                raise click.UsageError("--remove goes with a job: at a URI there is one checkpoint.")
            said = _sweep_outside(opened, target, dry_run, undo, older_than, as_json)
        else:
            leads = not dry_run and (alone or _is_free(opened, target))
            with _place(opened, target, led(target, timeout, files, zookeeper, "swept") if leads else None) as (
                job,
                queries,
            ):
                if removed and queries is None and not dry_run:
                    raise LeaderError(f"Job {target!r} is led: stop it before you remove the checkpoint of a query.")
                said = _undone(job.trash) if undo else _sweep_job(job, queries, removed, dry_run, as_json)
    if as_json:
        click.echo(json.dumps({"target": target, "dry_run": dry_run, **said}))
    else:
        _show(target, dry_run, said)


def _is_free(opened: Stores, job: str) -> bool:
    """Whether the job's last leader has given its lease back; raises if there is no such job."""
    return JobAdmin(opened.files, None, opened.timing.call_timeout).lease(job)[1].mode is Mode.RELEASED


@contextlib.contextmanager
def _place(
    opened: Stores, job: str, leading: contextlib.AbstractContextManager[Leadership] | None
) -> "Iterator[tuple[JobSweep, QueryCheckpoints | None]]":
    """Lead the job, or work beside its leader: the next one fences every rename."""
    from ha.checkpoints.sweeping import JobSweep  # noqa: PLC0415  # loads pyarrow

    admin = JobAdmin(opened.files, None, opened.timing.call_timeout)
    admin.directory(job)  # raises if there is no such job: to lead it would create it
    with leading or contextlib.nullcontext() as leadership:
        known = leadership.own.leader if leadership is not None else None
        sweep_of = JobSweep(opened.files, admin.directory(job, known), alone=leadership is not None)
        yield sweep_of, leadership.queries if leadership is not None else None


def _sweep_job(
    job: "JobSweep", queries: QueryCheckpoints | None, removed: Sequence[str], dry_run: bool, quiet: bool
) -> dict[str, Any]:
    before_ms = job.before_ms()
    there = job.queries()
    if unknown := [each for each in removed if each not in there]:
        raise LeaderError(f"There is no checkpoint of a query {unknown[0]!r}: there are {', '.join(there) or 'none'}.")
    found = [job.find(query, before_ms) for query in there if query not in removed]
    copies, revived = job.copies(before_ms), job.revived()
    said = {"queries": [_fields(each) for each in found], "copies": copies, "revived": revived, "removed": [*removed]}
    name = ""
    if not dry_run and (copies or revived or any(each.kinds for each in found)):
        name = job.trash.begin()
        _move(job.trash, name, found, quiet)
        for query in copies:
            job.move_copy(name, query)
        for old in revived:
            job.move_revived(name, old)
    if queries is not None and not dry_run:
        for query in removed:
            queries.discard(query)
    return {**said, "trash": name}


def _sweep_outside(
    opened: Stores, uri: str, dry_run: bool, undo: bool, older_than: float, quiet: bool
) -> dict[str, Any]:
    from ha.checkpoints.sweeping import OutsidePlace, check_trash, find  # noqa: PLC0415  # loads pyarrow

    def before_ms(written: Sequence[int]) -> float:
        return max(written, default=0) - older_than * DAY_MS if older_than else float("inf")

    parent, _, name = uri.rstrip("/").rpartition("/")
    with opened.open(parent) as outside:
        trash = SweptFiles(OutsidePlace(outside), "", check_trash(name))
        if undo:
            return _undone(trash)
        found = find(outside, name, name, before_ms)
        moved = ""
        if found.kinds and not dry_run:
            moved = trash.begin()
            _move(trash, moved, [found], quiet)
        return {"queries": [_fields(found)], "trash": moved}


def _undone(trash: SweptFiles) -> dict[str, Any]:
    name = trash.newest()
    if name is None:
        raise LeaderError("Nothing was swept, or the trash has been emptied: there is nothing to put back.")
    back, taken = trash.undo(name)
    return {"undone": name, "back": back, "taken": taken}


def _move(trash: SweptFiles, name: str, found: "Sequence[Sweepable]", quiet: bool) -> None:
    with _progress(quiet, sum(len(each.kinds) for each in found)) as told:
        for each in found:
            if each.kinds:
                for _ in trash.move(name, each.query, sorted(each.kinds)):
                    told()


@contextlib.contextmanager
def _progress(quiet: bool, total: int) -> Iterator[Callable[[], object]]:
    """Show a progress bar if standard error is a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield bool
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("moving files", total=total)
        yield lambda: bar.advance(task)


def _fields(found: "Sweepable") -> dict[str, Any]:
    from ha.checkpoints.sweep import Kind  # noqa: PLC0415

    return {
        "query": found.query,
        "files": len(found.kinds),
        "bytes": found.bytes,
        **{each.value: found.count(each) for each in Kind},
        "waiting": found.waiting,
        "waiting_bytes": found.waiting_bytes,
        "refused": found.refused,
    }


def _show(target: str, dry_run: bool, said: dict[str, Any]) -> None:
    if "undone" in said:
        click.echo(f"{target}: {said['back']} entries are back ({said['undone']})")
        for path in said["taken"]:
            click.echo(f"  {printable(path)} stays in the trash: its place is taken, gone or not known")
        return
    for each in said["queries"]:
        name = printable(each["query"])
        if each["refused"]:
            click.echo(f"{name}: nothing is swept. {each['refused']}")
            continue
        kinds = ", ".join(f"{each[kind]} {kind}" for kind in ("temporary", "version", "table") if each[kind])
        click.echo(f"{name}: {each['files']} files, {each['bytes']:,} bytes{': ' + kinds if kinds else ''}")
        if each["waiting"]:
            click.echo(
                f"  {each['waiting']} more, {each['waiting_bytes']:,} bytes, may be younger than the present writer: "
                "sweep again after the next change of the leader, or while nothing runs"
            )
    for what, sentence in (
        ("copies", "an unfinished copy for query {}"),
        ("revived", "directory {}, which a fenced driver has brought back to life"),
        ("removed", "the whole checkpoint of query {}; `ha trash restore JOB --query {}` brings it back"),
    ):
        for each in said.get(what, ()):
            click.echo("and " + sentence.replace("{}", printable(each)).replace("JOB", target))
    if dry_run:
        click.echo("nothing was moved (--dry-run)")
    elif said["trash"]:
        click.echo(f"moved into the trash ({said['trash']}); `ha sweep {target} --undo` brings it back")
