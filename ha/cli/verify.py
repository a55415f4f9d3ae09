"""``ha verify``: which batches of a job's queries, or of any checkpoint directory, can be continued."""

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
import msgspec

from ha.cli.options import json_option, printable, settings, stores
from ha.config.stores import Stores
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import NotFound

if TYPE_CHECKING:
    from ha.checkpoints.verify import Verified


@click.command()
@click.argument("target", metavar="JOB|URI")
@click.argument("query", required=False)
@json_option
@stores
def verify(target: str, query: str | None, as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Verify each batch that Spark retains of the queries of JOB, or of the checkpoint directory at URI.

    By names, lengths and what the small files say; the job may be running. Exit with 1 if a file is missing or damaged.
    What Spark forgets by design is told, and is no damage.
    """
    if find_spec("pyarrow") is None:
        raise click.UsageError("Verifying needs pyarrow: pip install 'hybrid-ha[spark]'.")
    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        if "://" in target:
            parent, _, name = target.rstrip("/").rpartition("/")
            with opened.open(parent) as outside:
                found = {target: _verified(outside, name)}
        else:
            found = _of_job(opened, target, query)
    finally:
        opened.close()
    if as_json:
        rows = [{"query": name, "batches": msgspec.to_builtins(each)} for name, each in found.items()]
        click.echo(json.dumps(rows))
    else:
        for name, each in found.items():
            _show(name, each)
    if any(batch.condition == "damaged" for each in found.values() for batch in each):
        click.get_current_context().exit(1)


def _of_job(opened: Stores, job: str, query: str | None) -> "dict[str, list[Verified]]":
    directory = JobAdmin(opened.files, None, opened.timing.call_timeout).directory(job)
    try:
        queries = sorted(entry.name for entry in directory.list(SPARK) if entry.is_directory)
    except NotFound:
        queries = []
    if query is not None and query not in queries:
        raise NoLeader(f"Job {job!r} has no checkpoint of a query {query!r}: it has {', '.join(queries) or 'none'}.")
    with opened.open(opened.files.uri) as outside:
        return {
            each: _verified(outside, directory.at(f"{SPARK}/{each}"))
            for each in queries
            if query is None or each == query
        }


def _verified(files: BoundedFiles, path: str) -> "list[Verified]":
    from ha.checkpoints.reading import CheckpointReader  # noqa: PLC0415  # loads pyarrow
    from ha.checkpoints.trees import Tree  # noqa: PLC0415
    from ha.checkpoints.verify import verify as verify_it  # noqa: PLC0415

    try:
        found, _ = verify_it(lambda: CheckpointReader(Tree(files, path)))
    except NotFound as error:
        raise click.UsageError(
            f"There is no checkpoint at {files.uri}/{path}, or it was moved just now: try again."
        ) from error
    return found


def _show(name: str, batches: "list[Verified]") -> None:
    if not batches:
        click.echo(f"{printable(name)}: no batch is committed")
        return
    counts = {each.condition: sum(1 for other in batches if other.condition == each.condition) for each in batches}
    told = ", ".join(f"{count} {condition}" for condition, count in counts.items())
    click.echo(f"{printable(name)}: batches {batches[0].batch} to {batches[-1].batch}: {told}")
    for each in batches:
        if each.missing:
            click.echo(f"  batch {each.batch} is {each.condition}. {printable(each.missing)}: {each.reason}")
