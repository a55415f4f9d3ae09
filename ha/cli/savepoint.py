"""``ha savepoint``: take a savepoint of a job, list its own, and dispose of one."""

import json

import click
import msgspec

from ha.cli.adopt_export import refusals_as_errors
from ha.cli.operate import job_admin
from ha.cli.options import printable, settings
from ha.cli.requests import ask_and_wait, request_options
from ha.config.stores import Stores
from ha.sidecar.operator_requests import SAVEPOINT
from ha.spark.savepoints.arguments import TIMEOUT, TIMEOUT_S, TO
from leader.job.admin import JobAdmin

ANSWERING_S = 30.0
"""Seconds that the leader may need to find the request, and to answer it."""


@click.command()
@click.option("--list", "listing", is_flag=True, help="List the job's own savepoints instead, oldest first.")
@click.option("--dispose", is_flag=True, help="Delete the savepoint at URI, or the own one of this NAME, instead.")
@request_options(TIMEOUT_S, "Give the savepoint up after this time, in seconds.")
@click.argument("uri", required=False, metavar="[URI|NAME]")
def savepoint(
    job: str,
    uri: str | None,
    listing: bool,
    dispose: bool,
    timeout: float,
    request_id: str | None,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Take a savepoint of JOB: all its queries at a consistent cut, at URI or among its own.

    URI is a new directory. Without one the savepoint is kept below JOB's directory, under the id of the request. It is
    complete in itself and stays until it is disposed of. JOB goes on meanwhile, and also if there is no savepoint.

    Start from it with `ha run --from` or `ha restart --from`. `ha adopt` takes the checkpoint of one query from it:
    they are below URI/spark.
    """
    if listing and (uri or dispose):
        raise click.UsageError("--list shows what is there: give JOB alone.")
    if dispose and not uri:
        raise click.UsageError("Say which savepoint is to be deleted: its URI, or its NAME in `ha savepoint --list`.")
    if listing:
        _list(job, files, zookeeper, as_json=as_json)
    elif dispose and uri:
        _dispose(job, uri, files, zookeeper, as_json=as_json)
    else:
        with job_admin(files, zookeeper) as admin:
            arguments = {TO: uri or "", TIMEOUT: f"{timeout:g}"}
            ask_and_wait(admin, job, SAVEPOINT, request_id, timeout + ANSWERING_S, arguments, as_json=as_json)


def _list(job: str, files: str | None, zookeeper: str | None, *, as_json: bool) -> None:
    from ha.spark.savepoints.places import own  # noqa: PLC0415  # loads what copies

    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        found = own(opened, JobAdmin(opened.files, None, opened.timing.call_timeout).directory(job))
    finally:
        opened.close()
    if as_json:
        click.echo(json.dumps([{"name": name, **msgspec.to_builtins(each)} for name, each in found]))
        return
    for name, each in found:
        click.echo(f"{each.at}  {name}  epoch {each.epoch}  {printable(each.said)}")


def _dispose(job: str, where: str, files: str | None, zookeeper: str | None, *, as_json: bool) -> None:
    from ha.spark.savepoints.places import opened as place_of  # noqa: PLC0415  # loads what copies

    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        own = "://" not in where
        directory = JobAdmin(opened.files, None, opened.timing.call_timeout).directory(job) if own else None
        with refusals_as_errors(), place_of(opened, directory, where) as place:
            manifest = place.dispose()
    finally:
        opened.close()
    if as_json:
        click.echo(json.dumps({"job": manifest.job, "disposed": where}))
    else:
        click.echo(f"{job}: the savepoint {where} is deleted")
