"""The readers' commands: ``ha job leader``, ``ha job watch``, ``ha checkpoint newest`` and ``ha checkpoint list``."""

from typing import Any

import click
import msgspec

from ha.cli.context import Context, command, table
from ha.cli.options import printable, timeout_option
from ha.client import Client
from ha.views.ages import at_time
from ha.views.leases import steady
from ha.views.records import checkpoint_row, leader_view
from leader.errors import NoLeader
from leader.layout.checkpoint import Checkpoint
from leader.layout.names import SPARK
from leader.lookup.answers import Answer, Source, nobody_leads


@command()
@timeout_option
def leader(context: Context, job: str, timeout: float) -> None:
    """Print the leader of JOB. Exit with 3 if it has none, with 4 if no store answers in time."""
    with Client(context.settings) as client:
        answer = client.leader(job, timeout)
    if answer.source is Source.HDFS:  # the client has seen the lease once, and not for how long it stays the same
        answer = _checked(context, answer)
    context.show(leader_view(answer), _leader_sentence(answer))


def _checked(context: Context, answer: Answer) -> Answer:
    """Compare an answer of the file system with the age of the lease. NoLeader: its holder has stopped renewing it."""
    found = steady(lambda: context.leases.look(context.admin, answer.job))
    if not found.lease.held and found.directory.leader.epoch == answer.epoch:
        since = f" since {at_time(found.lease.changed_ms)}" if found.lease.changed_ms else ""
        raise NoLeader(
            f"{nobody_leads(answer.job, answer.epoch)} {found.lease.contender} held the lease, which is "
            f"{found.lease.said}: it was not renewed{since}."
        )
    return msgspec.structs.replace(answer, verified=answer.verified and found.lease.in_time)


@command()
def watch(context: Context, job: str) -> None:
    """Print the leader of JOB, then one line for each change, until interrupted."""
    with Client(context.settings) as client:
        for answer in client.watch(job):
            fields = leader_view(answer) if answer else {"job": job, "epoch": None}
            context.show(fields, _leader_sentence(answer) if answer else f"{job}: no leader")


@command()
@timeout_option
def newest(context: Context, job: str, timeout: float) -> None:
    """Print the next checkpoint id of JOB and the newest completed checkpoint of each of its queries."""
    with Client(context.settings) as client:
        state = client.checkpoint(job, timeout)
    latest = [each for _, each in sorted(state.latest.items())]
    queries = {each.query: _checkpoint_fields(each) for each in latest}
    lines = (f"  {printable(each.query)}: batch {each.batch}, checkpoint {each.id}" for each in latest)
    context.show(
        {"job": job, "epoch": state.epoch, "next_id": state.next_id, "queries": queries},
        [f"{job}: next checkpoint id {state.next_id}", *lines],
    )


@command()
@timeout_option
def checkpoints(context: Context, job: str, timeout: float) -> None:
    """List the completed checkpoints of JOB that are kept, newest last.

    Below: queries with a checkpoint that have completed no batch in this job, as after an import.
    """
    with Client(context.settings) as client:
        kept = client.checkpoints(job, timeout)
    found = [{"query": each.query, **_checkpoint_fields(each)} for _, kept_ in sorted(kept.items()) for each in kept_]
    columns = ("QUERY", "BATCH", "ID", "DURATION MS", "ROWS", "ROWS/S", "STATE ROWS", "STATE BYTES", "OFFSETS")
    context.show(found, table(columns, [list(each.values()) for each in found], right=columns[1:-1]))
    if context.as_json:
        return
    directory = context.admin.directory(job)
    for name in sorted({entry.name for entry in directory.list(SPARK) if entry.is_directory} - kept.keys()):
        click.echo(
            f"{job}: query {printable(name)} has a checkpoint and has completed no batch here: "
            f"`ha checkpoint inspect {job} {printable(name)}` shows what is in it."
        )


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
