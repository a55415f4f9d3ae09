"""``ha queries``: the declared queries of a job, their states and their regions, from any host."""

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ha.cli.operate import job_admin
from ha.cli.options import json_option, printable, stores
from ha.spark.supervision.states import Graph, States, read
from leader.layout.lease import Mode


@click.command()
@click.argument("job")
@json_option
@stores
def queries(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Show the queries that JOB has declared with ha.spark.Job: state, region, restarts, last error.

    Exit with 3 if there is no such job.
    """
    with job_admin(files, zookeeper) as admin:
        leader, lease = admin.lease(job)
        graph, states = read(admin.directory(job))
    rows = _rows(graph, states)
    shown = states.epoch if states is not None else None
    led = lease.mode is not Mode.RELEASED
    if as_json:
        fields = {"job": job, "epoch": leader.epoch, "led": led, "states_of_epoch": shown, "queries": rows}
        click.echo(json.dumps(fields))
        return
    if not rows:
        click.echo(f"{job}: its program has declared no queries with ha.spark.Job.")
        return
    if not led or shown != leader.epoch:
        now = f"epoch {leader.epoch} has not shown any yet" if led else "nobody leads now"
        click.echo(f"{job}: these are the last states of epoch {shown or '-'}; {now}.")
    table = Table(box=None, pad_edge=False)
    for column in ("QUERY", "STATE", "REGION", "RESTARTS", "READS", "WRITES", "RUN ID", "LAST ERROR"):
        table.add_column(column, justify="right" if column in ("REGION", "RESTARTS") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row[key])) for key in _COLUMNS))
    Console(soft_wrap=True).print(table)


_COLUMNS = ("query", "state", "region", "restarts", "reads", "writes", "run_id", "error")


def _rows(graph: Graph | None, states: States | None) -> list[dict[str, Any]]:
    """Join both by the names of the queries; a new program's queries may have no state yet."""
    known = {each.name: each for each in states.queries} if states is not None else {}
    rows = []
    for each in graph.queries if graph is not None else []:
        state = known.get(each.name)
        rows.append(
            {
                "query": each.name,
                "state": state.state.value if state else None,
                "region": each.region,
                "restarts": state.restarts if state else None,
                "reads": each.reads,
                "writes": each.writes,
                "run_id": (state.run_id or None) if state else None,
                "error": (state.error or None) if state else None,
            }
        )
    return rows


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return printable(" ".join(value)) or "-"
    return "-" if value is None else printable(str(value))
