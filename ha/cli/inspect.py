"""``ha checkpoint inspect``, and the checkpoints that a command is given: those of a job, or a directory by its URI."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from ha.checkpoints.schemas import DEFAULT_STATE
from ha.cli.context import Context, command, needs, table
from ha.cli.options import flag_option, printable, value_option
from ha.spark.stored.operator_names import Kept, NamesSince, kept
from leader.errors import NoLeader
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import NotFound

if TYPE_CHECKING:
    from ha.checkpoints.inspection import Inspection, OperatorState, Skew, StoreState
    from ha.checkpoints.schemas import Field


_OF_STORES = ("STORE", "PARTITIONS", "KEYS", "AS OF BATCH", "SKEW", "BYTES", "SKEW", "REPLAYED")


@command()
@value_option(
    "--batch", click.IntRange(0), "N", "Describe it as of batch N.  [default: the newest that can be continued]"
)
@flag_option("--settings", "Also print the settings of Spark that are frozen.", name="with_settings")
def inspect(context: Context, target: str, query: str | None, batch: int | None, with_settings: bool) -> None:
    """Show what the checkpoints of JOB, or the checkpoint directory at URI, say: batches, state, sources, settings.

    The job may be running, or be dead. Batches are judged by names. Keys are counted as of the newest snapshot of each
    partition, and HDFSBackedStateStore does not count them. SKEW is the largest partition over the mean, and which one
    that is. REPLAYED is how many versions of changes a restart reads after the snapshot, in the partition with the most
    of them.
    """
    needs("Reading checkpoints", "pyarrow")
    with checkpoints(context, target, query) as places:
        found = {name: inspected(*place, batch) for name, place in places.items()}
    names: Kept = {} if "://" in target else kept(context.admin.directory(target))
    rows = [
        {"query": name, **msgspec.to_builtins(each), "names": msgspec.to_builtins(names.get(name, []))}
        for name, each in found.items()
    ]
    context.show(rows, _lines(found, names, with_settings=with_settings))


def inspected(files: BoundedFiles, path: str, batch: int | None) -> "Inspection":
    """Inspect one checkpoint. UsageError: there is none, or the batch is not retained."""
    from ha.checkpoints.checkpoint_reader import CheckpointReader  # noqa: PLC0415
    from ha.checkpoints.inspection import inspect as inspect_it  # noqa: PLC0415  # loads pyarrow
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


def _lines(found: "Mapping[str, Inspection]", names: Kept, *, with_settings: bool) -> Iterator[str]:
    for number, (name, each) in enumerate(found.items()):
        if number:
            yield ""
        yield from _described(name, each, names.get(name, []), with_settings=with_settings)


def _described(name: str, found: "Inspection", names: list[NamesSince], *, with_settings: bool) -> Iterator[str]:
    state = f"{found.format}, {found.partitions} partitions" if found.format else "no state"
    yield f"{printable(name)}: {state}, query id {printable(found.id) or 'unknown'}"
    for each in found.batches:
        span = f"batch {each.first}" if each.first == each.last else f"batches {each.first} to {each.last}"
        hole = f". {printable(each.missing)}: {each.reason}" if each.missing else ""
        yield f"  {span}: {each.condition}{hole}"
    if found.batch is None:
        yield "  no batch is committed"
        return
    yield f"  batch {found.batch}: {found.files:,} files, {_size(found.bytes)}, watermark {_time(found)}"
    for source, offset in found.sources.items():
        yield f"  source {printable(source)}: {printable(json.dumps(offset))}"
    for operator in found.operators:
        yield f"\noperator {operator.id}: {_named(operator, found.batch, names)}"
        rows = table(_OF_STORES, [_row(store) for store in operator.stores], right=_OF_STORES[1:])
        yield from (f"  {each}" for each in (*rows, *map(printable, _schemas(operator))))
    if len(names) > 1:
        yield "\nnames, as published"
        for past in names:
            yield f"  since batch {past.batch}: query id {printable(past.id)}; operators: {printable(past.said)}"
    if with_settings:
        yield "\nfrozen settings"
        for setting, value in sorted(found.settings.items()):
            yield f"  {printable(setting)} = {printable(value)}"


def _named(operator: "OperatorState", batch: int, names: list[NamesSince]) -> str:
    """Return an operator's description: from its metadata, else as kept for the newest batch up to this one."""
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


READERS = 32  # calls at once: listing and reading many small files is waiting for the most part


@contextlib.contextmanager
def checkpoints(context: Context, target: str, query: str | None) -> Iterator[dict[str, tuple[BoundedFiles, str]]]:
    """Return the store and the path of each checkpoint, by the name that it is shown with."""
    # `target`: a job, or the URI of a directory. `query`: the only one of the job; None for all.
    # NoLeader: there is no such job, or it has no checkpoint of that query, or of any. UsageError: there is no
    # checkpoint at the URI.
    if "://" in target:
        parent, _, name = target.rstrip("/").rpartition("/")
        with context.stores.open_root(parent, workers=READERS) as outside:
            there: set[str] = set()
            with suppress(NotFound):
                found = outside.call("list", lambda files: files.list(name), context.stores.patience)
                there = {each.name for each in found} & {"metadata", "offsets", "commits"}
            if not there:
                raise click.UsageError(f"There is no checkpoint at {target}: give the checkpointLocation of a query.")
            yield {target: (outside, name)}
        return
    opened, directory = context.stores, context.admin.directory(target)
    try:
        queries = sorted(entry.name for entry in directory.list(SPARK) if entry.is_directory)
    except NotFound:
        queries = []
    if query is None and not queries:
        raise NoLeader(f"Job {target!r} has no checkpoint of a query yet.")
    if query is not None and query not in queries:
        raise NoLeader(f"Job {target!r} has no checkpoint of a query {query!r}: it has {', '.join(queries) or 'none'}.")
    with opened.open(opened.files.uri, workers=READERS) as outside:
        yield {each: (outside, directory.at(f"{SPARK}/{each}")) for each in queries if query is None or each == query}
