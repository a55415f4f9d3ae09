"""``ha checkpoint state``: keys and values in the state of a query, read by a Spark that is started for it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ha.cli.context import Context, command, needs, table
from ha.cli.inspect import checkpoints, inspected
from ha.cli.options import flag_option, printable, value_option
from leader.errors import InvalidName, LeaderError

if TYPE_CHECKING:
    from ha.checkpoints.inspection import Inspection


@command()
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
@flag_option("--changes", "Show what the batch has changed, not the whole state after it.")
@value_option("--limit", click.IntRange(1, 1_000_000), None, "Show at most so many keys.", default=20)
def state(
    context: Context,
    target: str,
    query: str | None,
    batch: int | None,
    operator: int | None,
    store: str | None,
    keys: tuple[str, ...],
    changes: bool,
    limit: int,
) -> None:
    """Show keys and values in the state of QUERY in JOB, or in the checkpoint directory at URI.

    Starts a Spark on this host, which takes some seconds, and reads with its state data source; the job may be running.
    `ha checkpoint inspect` says which batches, operators and stores there are.
    """
    needs("Reading state", "pyspark", "pyarrow")
    where = _columns(keys)
    with checkpoints(context, target, query) as places:
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
    context.show(rows, _lines(rows))
    if more and not context.as_json:
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

    from ha.spark.stored.stored_state import choose, meaning, rows, session  # noqa: PLC0415

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


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table with a column for each field of key and value."""
    if not rows:
        yield "no key"
        return
    flat = [_flat(each) for each in rows]
    columns = list(dict.fromkeys(name for each in flat for name in each))
    yield from table(list(map(printable, columns)), ([each.get(column, "-") for column in columns] for each in flat))


def _flat(row: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in row.items():
        parts = value.items() if name in ("key", "value") and isinstance(value, dict) else [("", value)]
        for part, each in parts:
            shown = each if isinstance(each, str) else json.dumps(each)
            found[f"{name}.{part}" if part else name] = shown
    return found
