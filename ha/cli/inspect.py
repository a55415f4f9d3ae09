"""``ha inspect``: what the checkpoints of a job's queries say, or any checkpoint directory, of a dead job as well."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ha.checkpoints.schemas import DEFAULT_STATE
from ha.cli.checkpoints import checkpoints
from ha.cli.options import json_option, printable, settings, stores
from ha.config.stores import Stores
from ha.spark.operator_names import Kept, NamesSince, kept
from leader.job.admin import JobAdmin
from store.bounded import BoundedFiles
from store.errors import NotFound

if TYPE_CHECKING:
    from ha.checkpoints.inspection import Inspection, OperatorState, Skew, StoreState
    from ha.checkpoints.schemas import Field

_COLUMNS = ("STORE", "PARTITIONS", "KEYS", "AS OF BATCH", "SKEW", "BYTES", "SKEW", "REPLAYED")

_WIDTH = 1000
"""Columns of characters that a table may take."""


@click.command()
@click.argument("target", metavar="JOB|URI")
@click.argument("query", required=False)
@click.option(
    "--batch",
    type=click.IntRange(min=0),
    metavar="N",
    help="Describe it as of batch N.  [default: the newest that can be continued]",
)
@click.option("--settings", "with_settings", is_flag=True, help="Also print the settings of Spark that are frozen.")
@json_option
@stores
def inspect(
    target: str,
    query: str | None,
    batch: int | None,
    with_settings: bool,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Show what the checkpoints of JOB, or the checkpoint directory at URI, say: batches, state, sources, settings.

    The job may be running, or be dead. Batches are judged by names; `ha verify` also opens the snapshots of all of
    them. Keys are counted as of the newest snapshot of each partition, and HDFSBackedStateStore does not count them.
    SKEW is the largest partition over the mean, and which one that is. REPLAYED is how many versions of changes a
    restart reads after the snapshot, in the partition with the most of them.
    """
    if find_spec("pyarrow") is None:
        raise click.UsageError("Reading checkpoints needs pyarrow: pip install 'hybrid-ha[spark]'.")
    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        with checkpoints(opened, target, query) as places:
            found = {name: inspected(*place, batch) for name, place in places.items()}
        names = names_of(opened, target)
    finally:
        opened.close()
    if as_json:
        rows = [
            {"query": name, **msgspec.to_builtins(each), "names": msgspec.to_builtins(names.get(name, []))}
            for name, each in found.items()
        ]
        click.echo(json.dumps(rows))
        return
    if not found:
        click.echo(f"{target}: there is no checkpoint of a query")
    for number, (name, each) in enumerate(found.items()):
        if number:
            click.echo()
        _show(name, each, names.get(name, []), with_settings=with_settings)


def names_of(opened: Stores, target: str) -> Kept:
    """Return what a job has kept of its queries' names; none of a directory by its URI.

    Raises:
        NoLeader: there is no such job.
        StoreError: the store did not answer.
    """
    return {} if "://" in target else kept(JobAdmin(opened.files, None, opened.timing.call_timeout).directory(target))


def inspected(files: BoundedFiles, path: str, batch: int | None) -> "Inspection":
    """Inspect one checkpoint.

    Raises:
        UsageError: there is none, or the batch is not retained.
        StoreError: the store did not answer.
    """
    from ha.checkpoints.inspection import inspect as inspect_it  # noqa: PLC0415  # loads pyarrow
    from ha.checkpoints.reading import CheckpointReader  # noqa: PLC0415
    from ha.checkpoints.trees import Tree  # noqa: PLC0415

    reader = CheckpointReader(Tree(files, path))
    try:
        found = inspect_it(reader, batch)
    except NotFound as error:
        raise click.UsageError(f"There is no checkpoint at {reader.tree.uri}, or it was moved just now.") from error
    if batch is not None and not any(each.first <= batch <= each.last for each in found.batches):
        spans = ", ".join(f"{each.first} to {each.last}" for each in found.batches) or "none"
        raise click.UsageError(f"Batch {batch} is not retained at {reader.tree.uri}: {spans}.")
    return found


def _show(name: str, found: "Inspection", names: list[NamesSince], *, with_settings: bool) -> None:
    state = f"{found.format}, {found.partitions} partitions" if found.format else "no state"
    click.echo(f"{printable(name)}: {state}, query id {printable(found.id) or 'unknown'}")
    for each in found.batches:
        span = f"batch {each.first}" if each.first == each.last else f"batches {each.first} to {each.last}"
        hole = f". {printable(each.missing)}: {each.reason}" if each.missing else ""
        click.echo(f"  {span}: {each.condition}{hole}")
    if found.batch is None:
        click.echo("  no batch is committed")
        return
    click.echo(f"  batch {found.batch}: {found.files:,} files, {_size(found.bytes)}, watermark {_time(found)}")
    for source, offset in found.sources.items():
        click.echo(f"  source {printable(source)}: {printable(json.dumps(offset))}")
    for operator in found.operators:
        click.echo(f"\noperator {operator.id}: {_named(operator, found.batch, names)}")
        _table(_COLUMNS, [_row(store) for store in operator.stores])
        for line in _schemas(operator):
            click.echo(f"  {printable(line)}")
    if len(names) > 1:
        click.echo("\nnames, as published")
        for past in names:
            click.echo(f"  since batch {past.batch}: query id {printable(past.id)}; operators: {printable(past.said)}")
    if with_settings:
        click.echo("\nfrozen settings")
        for setting, value in sorted(found.settings.items()):
            click.echo(f"  {printable(setting)} = {printable(value)}")


def _named(operator: "OperatorState", batch: int, names: list[NamesSince]) -> str:
    """Say what an operator is: as its metadata have it, else as it was kept for the newest batch up to this one."""
    if operator.name:
        return printable(operator.name)
    known = next((each.operators for each in reversed(names) if each.batch <= batch), {}).get(operator.id)
    return "its metadata are missing" + (f"; it was {printable(known)}" if known else "")


def _row(store: "StoreState") -> tuple[str, ...]:
    as_of = "-"
    if store.keys_from is not None:
        as_of = f"{store.keys_from}" if store.keys_from == store.keys_to else f"{store.keys_from} to {store.keys_to}"
    return (
        store.name,
        f"{store.partitions}",
        f"{store.keys:,}" if store.keys is not None else "-",
        as_of,
        _skewed(store.key_skew),
        _size(store.bytes),
        _skewed(store.byte_skew),
        f"{store.replayed}",
    )


def _schemas(operator: "OperatorState") -> list[str]:
    said = operator.properties.get("stateVariables", ())
    kinds = {each.get("stateName"): each.get("stateVariableType") for each in said}
    lines = []
    for store in operator.stores:
        for state in store.states:
            if not state.internal:
                name = store.name if state.name == DEFAULT_STATE else f"{store.name}, {state.name}"
                kind = f" ({kinds[state.name]})" if state.name in kinds else ""
                lines.append(f"{name}{kind}: {_columns(state.key)} -> {_columns(state.value)}")
    return lines


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print a table in its natural width: folded columns could not be read, and cannot be searched."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column == columns[0] else "right")
    for row in rows:
        table.add_row(*(Text(printable(each)) for each in row))
    console = Console(width=_WIDTH)
    with console.capture() as text:
        console.print(table)
    for line in text.get().splitlines():
        click.echo(f"  {line}".rstrip())


def _columns(fields: "list[Field]") -> str:
    return ", ".join(f"{each.name} {each.type}" for each in fields)


def _skewed(skew: "Skew | None") -> str:
    return f"{skew.ratio:.2f} at {skew.partition}" if skew is not None else "-"


def _size(count: float) -> str:
    """Write a number of bytes as people read it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:  # noqa: PLR2004
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} TB"


def _time(found: "Inspection") -> str:
    if not found.watermark_ms:
        return "none"
    try:
        return datetime.fromtimestamp(found.watermark_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(found.watermark_ms)
