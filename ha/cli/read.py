"""``ha leader``, ``ha watch``: what readers ask."""

import json
from typing import Any

import click

from ha.cli.options import json_option, printable, settings, stores, timeout_option
from ha.client import Client
from leader.answers import Answer


@click.command()
@click.argument("job")
@json_option
@timeout_option
@stores
def leader(job: str, as_json: bool, timeout: float, files: str | None, zookeeper: str | None) -> None:
    """Print who leads JOB. Exits with 3 if nobody does, with 4 if no store answers in time."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        answer = client.leader(job, timeout)
    click.echo(json.dumps(_fields(answer)) if as_json else _sentence(answer))


@click.command()
@click.argument("job")
@json_option
@stores
def watch(job: str, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print the leader of JOB, then one line for every change, until interrupted."""
    with Client(settings(files=files, zookeeper=zookeeper)) as client:
        for answer in client.watch(job):
            if as_json:
                click.echo(json.dumps(_fields(answer) if answer else {"job": job, "epoch": None}))
            else:
                click.echo(_sentence(answer) if answer else f"{job}: no leader")


def _fields(answer: Answer) -> dict[str, Any]:
    return {
        "job": answer.job,
        "epoch": answer.epoch,
        "session_id": answer.session_id,
        "endpoints": dict(answer.endpoints),
        "source": answer.source.value,
        "age_ms": round(answer.age * 1000),
        "verified": answer.verified,
    }


def _sentence(answer: Answer) -> str:
    addresses = sorted((name, printable(address)) for name, address in answer.endpoints.items())
    endpoints = " ".join(f"{name}={address}" for name, address in addresses) or "no endpoints"
    verified = ", verified" if answer.verified else ""
    return f"{answer.job}: epoch {answer.epoch} {answer.session_id} {endpoints} ({answer.source.value}{verified})"
