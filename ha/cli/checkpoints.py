"""``ha checkpoint``, ``ha checkpoints``: the newest completed ones, as readers are told; all that are kept, of HDFS."""

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ha.cli.options import json_option, printable, settings, stores, timeout_option
from ha.client import Client
from leader.checkpoint import Checkpoint


@click.command()
@click.argument("job")
@json_option
@timeout_option
@stores
def checkpoint(job: str, as_json: bool, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """Print the next checkpoint id of JOB, and the newest completed checkpoint of each of its queries."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        state = client.checkpoint(job, timeout)
    latest = [each for _, each in sorted(state.latest.items())]
    if as_json:
        queries = {each.query: _fields(each) for each in latest}
        click.echo(json.dumps({"job": job, "epoch": state.epoch, "next_id": state.next_id, "queries": queries}))
        return
    click.echo(f"{job}: next checkpoint id {state.next_id}")
    for each in latest:
        click.echo(f"  {printable(each.query)}: batch {each.batch}, checkpoint {each.id}")


@click.command()
@click.argument("job")
@json_option
@timeout_option
@stores
def checkpoints(job: str, as_json: bool, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """List the completed checkpoints of JOB that are kept, newest last; JSON has one line for each."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        kept = client.checkpoints(job, timeout)
    found = [each for _, retained in sorted(kept.items()) for each in retained]
    if as_json:
        for each in found:
            click.echo(json.dumps({"query": each.query, **_fields(each)}))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("QUERY", "BATCH", "ID", "DURATION MS", "ROWS", "STATE ROWS", "STATE BYTES", "OFFSETS"):
        table.add_column(column, justify="left" if column in ("QUERY", "OFFSETS") else "right")
    for each in found:
        numbers = ("-" if value is None else str(value) for value in list(_fields(each).values())[:-1])
        table.add_row(Text(printable(each.query)), *numbers, Text(printable(each.metadata.offsets) or "-"))
    Console(soft_wrap=True).print(table)


def _fields(checkpoint: Checkpoint) -> dict[str, Any]:
    known = checkpoint.metadata
    return {
        "batch": checkpoint.batch,
        "id": checkpoint.id,
        "duration_ms": known.duration_ms,
        "rows": known.rows,
        "state_rows": known.state_rows,
        "state_bytes": known.state_bytes,
        "offsets": known.offsets or None,
    }
