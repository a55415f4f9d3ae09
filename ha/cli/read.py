"""The readers' commands: ``ha leader``, ``ha watch``, ``ha checkpoint`` and ``ha checkpoints``."""

import json
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ha.cli.options import json_option, printable, settings, stores, timeout_option
from ha.client import Client
from ha.views.records import checkpoint_row
from leader.layout.checkpoint import Checkpoint
from leader.lookup.answers import Answer


@click.command()
@click.argument("job")
@json_option
@timeout_option
@stores
def leader(job: str, as_json: bool, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """Print the leader of JOB. Exit with 3 if it has none, with 4 if no store answers in time."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        answer = client.leader(job, timeout)
    click.echo(json.dumps(_leader_fields(answer)) if as_json else _leader_sentence(answer))


@click.command()
@click.argument("job")
@json_option
@stores
def watch(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print the leader of JOB, then one line for each change, until interrupted."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        for answer in client.watch(job):
            if as_json:
                click.echo(json.dumps(_leader_fields(answer) if answer else {"job": job, "epoch": None}))
            else:
                click.echo(_leader_sentence(answer) if answer else f"{job}: no leader")


@click.command()
@click.argument("job")
@json_option
@timeout_option
@stores
def checkpoint(job: str, as_json: bool, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """Print the next checkpoint id of JOB and the newest completed checkpoint of each of its queries."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        state = client.checkpoint(job, timeout)
    latest = [each for _, each in sorted(state.latest.items())]
    if as_json:
        queries = {each.query: _checkpoint_fields(each) for each in latest}
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
    """List the completed checkpoints of JOB that are kept, newest last."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        kept = client.checkpoints(job, timeout)
    found = [each for _, retained in sorted(kept.items()) for each in retained]
    if as_json:
        click.echo(json.dumps([{"query": each.query, **_checkpoint_fields(each)} for each in found]))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("QUERY", "BATCH", "ID", "DURATION MS", "ROWS", "ROWS/S", "STATE ROWS", "STATE BYTES", "OFFSETS"):
        table.add_column(column, justify="left" if column in ("QUERY", "OFFSETS") else "right")
    for each in found:
        numbers = map(_number, list(_checkpoint_fields(each).values())[:-1])
        table.add_row(Text(printable(each.query)), *numbers, Text(printable(each.metadata.offsets) or "-"))
    Console(soft_wrap=True).print(table)


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _leader_fields(answer: Answer) -> dict[str, Any]:
    return {
        "job": answer.job,
        "epoch": answer.epoch,
        "session_id": answer.session_id,
        "endpoints": dict(answer.endpoints),
        "source": answer.source.value,
        "age_ms": round(answer.age * 1000),
        "verified": answer.verified,
    }


def _leader_sentence(answer: Answer) -> str:
    addresses = sorted((name, printable(address)) for name, address in answer.endpoints.items())
    endpoints = " ".join(f"{name}={address}" for name, address in addresses) or "no endpoints"
    verified = ", verified" if answer.verified else ""
    return f"{answer.job}: epoch {answer.epoch} {answer.session_id} {endpoints} ({answer.source.value}{verified})"


def _checkpoint_fields(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what stands below its query's name."""
    found: dict[str, Any] = msgspec.to_builtins(checkpoint_row(checkpoint))
    del found["query"]
    return found
