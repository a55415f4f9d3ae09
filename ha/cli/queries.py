"""``ha queries``: the declared queries of a job, their states and their regions, from any host."""

import json
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ha.cli.operate import job_admin
from ha.cli.options import json_option, printable, stores
from ha.views import queries as views


@click.command()
@click.argument("job")
@json_option
@stores
def queries(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Show the queries that JOB has declared with ha.spark.Job: state, region, restarts, last error.

    Exit with 3 if there is no such job.
    """
    with job_admin(files, zookeeper) as admin:
        found = views.queries(admin, job)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found)))
        return
    if not found.queries:
        click.echo(f"{job}: its program has declared no queries with ha.spark.Job.")
        return
    if not found.led or found.states_of_epoch != found.epoch:
        now = f"epoch {found.epoch} has not shown any yet" if found.led else "nobody leads now"
        click.echo(f"{job}: these are the last states of epoch {found.states_of_epoch or '-'}; {now}.")
    table = Table(box=None, pad_edge=False)
    for column in ("QUERY", "STATE", "REGION", "RESTARTS", "READS", "WRITES", "RUN ID", "LAST ERROR"):
        table.add_column(column, justify="right" if column in ("REGION", "RESTARTS") else "left", overflow="fold")
    for row in found.queries:
        table.add_row(*(Text(_cell(getattr(row, name))) for name in _COLUMNS))
    Console(soft_wrap=True).print(table)


_COLUMNS = ("query", "state", "region", "restarts", "reads", "writes", "run_id", "error")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return printable(" ".join(value)) or "-"
    return "-" if value is None else printable(str(value))
