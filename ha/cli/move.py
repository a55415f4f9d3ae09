"""``ha job roots`` and ``move``: the roots of a group with their jobs and load, and how a job gets to another one."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import click
import msgspec

from ha.cli.context import Context, command, needs, operator, refusals_as_errors, table
from ha.cli.options import flag_option, printable, seconds_option
from ha.cli.progress import copying
from ha.config.stores import Stores
from ha.placement.group_files import GroupFiles
from ha.placement.load import RootView, overview
from ha.verbs.table import VERBS
from leader.errors import InvalidSettings


@command()
@seconds_option(
    "12 s",
    "Count the requests in this time. NameNodes refresh their figures every 10 s, unless they are set otherwise.",
    "--interval",
)
def roots(context: Context, interval: float) -> None:
    """Show the roots of the group in `files`: the jobs that lie there, and the load of their NameNodes.

    Requests and queues are those of the whole NameNode, by its JMX. The exit code is 1 if a root does not answer.
    """
    opened = context.stores
    rows = overview(group_of(opened), interval, opened.settings.stores.webhdfs_ca)
    context.show(msgspec.to_builtins(rows), _loads(rows))
    for row in () if context.as_json else rows:
        if row.problem:
            where = "" if row.root in row.problem else f"{row.root}: "
            click.echo(f"{where}{printable(row.problem)}", err=True)
    click.get_current_context().exit(1 if any(each.jobs is None for each in rows) else 0)


def group_of(opened: Stores) -> GroupFiles:
    """Return the group of roots. InvalidSettings: there is one root only."""
    if not isinstance(opened.files, GroupFiles):
        raise InvalidSettings(
            f"files is {opened.settings.stores.files}, which is one root: set `files` to a group, as `hdfs://ns1/ha,"
            "hdfs://ns2/ha` or the name of a [groups.NAME] of ha.toml."
        )
    return opened.files


def _loads(rows: list[RootView]) -> Iterator[str]:
    columns = ("ROOT", "JOBS", "REQUESTS/S", "QUEUE MS", "PROCESSING MS", "QUEUE")
    figures = (
        (
            None if row.jobs is None else len(row.jobs),
            row.requests_per_second,
            row.queue_ms,
            row.processing_ms,
            row.queue_length,
        )
        for row in rows
    )
    shown = (["?" if each is None else f"{each:g}" for each in row] for row in figures)
    yield from table(columns, ([row.root, *each] for row, each in zip(rows, shown, strict=True)))
    rates = [row.requests_per_second for row in rows if row.requests_per_second is not None]
    if len(rates) == len(rows) and max(rates, default=0.0) > 0:
        yield f"The most loaded root takes {max(rates) * len(rates) / sum(rates):.2f} times the mean."


@command()
@click.option("--to", metavar="ROOT", help="Root of the group in `files`: its URI, or the nameservice or host in it.")
@flag_option("--undo", "Put back a move that was interrupted and is not decided yet.")
@seconds_option(60.0, "Wait this long for the leader of a job to hand over, and for the next one.")
def move(context: Context, job: str, to: str | None, undo: bool, timeout: float) -> None:
    """Move JOB to another root of its group, with its checkpoints and all that it has.

    It is copied while it runs. Then its leader hands over to this command, which copies the rest, and puts the job in
    its new place: its contenders find it there, and one of them leads it. If it is interrupted, run it again, or with
    --undo. What is not below `files`, such as the files of outputs, stays where it is.

    A job that has moved stays for 30 minutes.
    """
    if (to is None) != undo:
        raise click.UsageError("Give either --to ROOT or --undo.")
    needs("Moving", "pyarrow")
    from ha.groups.mover import mover_of  # noqa: PLC0415  # loads pyarrow

    group, quiet = group_of(context.stores), context.as_json
    with refusals_as_errors(), copying(quiet) as told:
        mover = mover_of(
            context.stores, group, job, timeout, operator(), told, lambda line: context.tell(printable(line))
        )
        if to is None:
            at = mover.undo()
            context.show({"job": job, "at": at}, f"{job}: it is at {at}")
            return
        done = mover.move(_root(list(group.roots), to))
    led = f"; {done.leader} leads it there after {done.pause:.1f} s" if done.leader else "; it has no leader"
    back = VERBS["move"].undo.format(job=job, before=done.source)
    moved = f"{job}: moved from {done.source} to {done.target} in {done.seconds:.1f} s{led}\n{back}"
    context.show(done, moved if done.source else f"{job}: it is at {done.target}")


def _root(roots: list[str], wanted: str) -> str:
    """Return the root of the group that is meant. UsageError: none is, or several are."""
    found = [each for each in roots if wanted.rstrip("/") in (each.rstrip("/"), urlsplit(each).netloc)]
    if len(found) != 1:
        raise click.UsageError(f"--to is {wanted!r}: name one of the roots {', '.join(roots)}.")
    return found[0]
