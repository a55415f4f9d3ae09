"""``ha groups``: the roots of a group, their jobs and their load."""

import json

import click
import msgspec
from rich.console import Console
from rich.table import Table

from ha.cli.operate import opened_stores
from ha.cli.options import Seconds, json_option, printable, stores
from ha.config.stores import Stores
from ha.groups.overview import RootView, overview
from ha.groups.placement.group_files import GroupFiles
from leader.errors import InvalidSettings

FIGURES_WIDTH = 60
"""Of the columns beside the root, whose URI is not cut."""


@click.command()
@click.option(
    "--interval",
    type=Seconds(),
    default="12 s",
    show_default=True,
    metavar="SECONDS",
    help="Count the requests in this time. NameNodes refresh their figures every 10 s, unless they are set otherwise.",
)
@json_option
@stores
def groups(interval: float, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Show the roots of the group in `files`: the jobs that lie there, and the load of their NameNodes.

    Requests and queues are those of the NameNode as a whole, as its JMX says. The exit code is 1 if a root does not
    answer.
    """
    with opened_stores(files, zookeeper) as opened:
        rows = overview(group_of(opened), interval, opened.settings.webhdfs_ca)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(rows)))
    else:
        _print(rows)
    raise SystemExit(1 if any(each.jobs is None for each in rows) else 0)


def group_of(opened: Stores) -> GroupFiles:
    """Return the group of roots.

    Raises:
        InvalidSettings: there is one root only.
    """
    if not isinstance(opened.files, GroupFiles):
        raise InvalidSettings(
            f"files is {opened.settings.files}, which is one root: set `files` to a group, as `hdfs://ns1/ha,"
            "hdfs://ns2/ha` or the name of a [groups.NAME] of ha.toml."
        )
    return opened.files


def _print(rows: list[RootView]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("ROOT", "JOBS", "REQUESTS/S", "QUEUE MS", "PROCESSING MS", "QUEUE"):
        table.add_column(column)
    for row in rows:
        figures = (row.requests_per_second, row.queue_ms, row.processing_ms, row.queue_length)
        jobs = "?" if row.jobs is None else str(len(row.jobs))
        table.add_row(row.root, jobs, *("?" if each is None else f"{each:g}" for each in figures))
    widest = max(len(row.root) for row in rows)
    Console(soft_wrap=True, width=widest + FIGURES_WIDTH).print(table)
    rates = [row.requests_per_second for row in rows if row.requests_per_second is not None]
    if len(rates) == len(rows) and max(rates, default=0.0) > 0:
        click.echo(f"The most loaded root takes {max(rates) / (sum(rates) / len(rates)):.2f} times the mean.")
    for row in rows:
        if row.problem:
            where = "" if row.root in row.problem else f"{row.root}: "
            click.echo(f"{where}{printable(row.problem)}", err=True)
