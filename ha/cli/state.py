"""``ha state``: keys and values in the state of a query, read by a Spark that is started for it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ha.cli.checkpoints import checkpoints
from ha.cli.inspect import inspected
from ha.cli.options import json_option, printable, settings, stores
from ha.config.stores import Stores
from leader.errors import InvalidName, LeaderError

if TYPE_CHECKING:
    from ha.checkpoints.inspection import Inspection

_WIDTH = 1000
"""Columns of characters that a table may take."""


@click.command()
@click.argument("target", metavar="JOB|URI")
@click.argument("query", required=False)
@click.option("--batch", type=click.IntRange(min=0), metavar="N", help="State after batch N.  [default: the newest]")
@click.option("--operator", type=click.IntRange(min=0), metavar="ID", help="Number of the operator, if there are more.")
@click.option("--store", metavar="NAME", help="Store of a join, or variable of transformWithState.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only keys with this value, as text; window.start=... is a part of a column. Repeat it for more columns.",
)
@click.option("--changes", is_flag=True, help="Show what the batch has changed, not the whole state after it.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=20, show_default=True, help="Show at most so many keys."
)
@json_option
@stores
def state(
    target: str,
    query: str | None,
    batch: int | None,
    operator: int | None,
    store: str | None,
    keys: tuple[str, ...],
    changes: bool,
    limit: int,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Show keys and values in the state of QUERY in JOB, or in the checkpoint directory at URI.

    Starts a Spark on this host, which takes some seconds, and reads with its state data source; the job may be running.
    `ha inspect` says which batches, operators and stores there are.
    """
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise click.UsageError("Reading state needs Spark: pip install 'hybrid-ha[spark]'.")
    where = _columns(keys)
    opened = Stores(settings(files=files, zookeeper=zookeeper))
    try:
        with checkpoints(opened, target, query) as places:
            if len(places) != 1:
                names = ", ".join(places) or "none"
                raise click.UsageError(f"Say which query of job {target!r} is meant: it has {names}.")
            ((place, path),) = places.values()
            found = inspected(place, path, batch)
            if found.batch is None:
                raise LeaderError(f"There is no state at {place.at(path)}: no batch is committed.")
            hole = next(each for each in found.batches if each.first <= (found.batch or 0) <= each.last)
            if hole.missing:
                raise LeaderError(f"Batch {found.batch} cannot be read. {hole.missing}: {hole.reason}")
            if sys.stderr.isatty():
                click.echo("Starting Spark, which takes some seconds ...", err=True)
            rows, more = _read(place.at(path), found, operator, store, where, changes=changes, limit=limit)
    finally:
        opened.close()
    if as_json:
        click.echo(json.dumps(rows))
        return
    _show(rows)
    if more:
        click.echo(f"There are more than {limit}: raise --limit, or choose with --key.", err=True)


def _read(
    uri: str,
    found: "Inspection",
    operator: int | None,
    store: str | None,
    where: dict[str, str],
    *,
    changes: bool,
    limit: int,
) -> tuple[list[dict[str, Any]], bool]:
    from pyspark.errors import PySparkException  # noqa: PLC0415  # takes half a second

    from ha.spark.stored_state import choose, rows, session  # noqa: PLC0415

    try:
        chosen = choose(found, operator, store, changes=changes)
    except InvalidName as error:
        raise click.UsageError(f"{error}") from error
    try:
        with silent(), session(found) as spark:
            return rows(spark, uri, chosen, where, limit)
    except InvalidName as error:
        raise click.UsageError(f"{error}") from error
    except PySparkException as error:
        said = meaning(error)
        raise LeaderError(f"Spark cannot read the state after batch {found.batch} at {uri}: {said}") from error


def meaning(error: Exception) -> str:
    """Return the line of an error of Spark that says what it is."""
    lines = str(error).splitlines()
    return next((each for each in lines if "[" in each), lines[0] if lines else type(error).__name__)


@contextmanager
def silent() -> Iterator[None]:
    """Keep what Spark and its JVM write to standard error off the terminal; an error is raised, and told."""
    sys.stderr.flush()
    former = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(former, 2)
        os.close(former)


def _columns(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not equals or not column:
            raise click.BadParameter(f"{text!r} is not COLUMN=VALUE, such as user=anna.", param_hint="--key")
        found[column] = value
    return found


def _show(rows: list[dict[str, Any]]) -> None:
    """Print a table with a column for each field of key and value."""
    if not rows:
        click.echo("no key")
        return
    flat = [_flat(each) for each in rows]
    columns = list(dict.fromkeys(name for each in flat for name in each))
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(Text(printable(column)))
    for each in flat:
        table.add_row(*(Text(printable(each.get(column, "-"))) for column in columns))
    console = Console(width=_WIDTH)
    with console.capture() as text:
        console.print(table)
    for line in text.get().splitlines():
        click.echo(line.rstrip())


def _flat(row: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in row.items():
        parts = value.items() if name in ("key", "value") and isinstance(value, dict) else [("", value)]
        for part, each in parts:
            shown = each if isinstance(each, str) else json.dumps(each)
            found[f"{name}.{part}" if part else name] = shown
    return found
