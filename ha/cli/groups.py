"""``ha job roots``: the roots of a group, their jobs and their load."""

from collections.abc import Iterator

import click
import msgspec

from ha.cli.context import Context, command, table
from ha.cli.options import printable, seconds_option
from ha.config.stores import Stores
from ha.groups.overview import RootView, overview
from ha.placement.group_files import GroupFiles
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
    context.show(msgspec.to_builtins(rows), _lines(rows))
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


def _lines(rows: list[RootView]) -> Iterator[str]:
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
