"""Layouts: the operators with state that a query has, and what their states are called, by number. Pure.

A checkpoint knows its operators by their numbers in the plan only. So what a changed program has there is compared, and
found again, by the names in its metadata and schemas.
"""

from collections.abc import Generator, Mapping

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.closure import Contents, Wanted
from ha.checkpoints.contents import OperatorStores, Unreadable
from ha.checkpoints.names import DEFAULT_STORE, CheckpointFiles
from ha.checkpoints.schemas import DEFAULT_STATE, StateSchema, state_schemas


class Layout(msgspec.Struct, frozen=True):
    """One operator with state.

    Attributes:
        id: its number in the plan.
        name: of its kind, as Spark calls it; empty if its metadata are missing.
        states: schema of each state, by the name of its store and its own, where it has one.
    """

    id: int
    name: str
    states: dict[str, StateSchema]


Layouts = Mapping[int, Layout]
"""The operators of a query, by number."""


def layouts(files: CheckpointFiles, batch: int) -> Generator[Wanted, Contents, dict[int, Layout]]:
    """Read the layout of a checkpoint; run it with :meth:`ha.checkpoints.reading.CheckpointReader.run`.

    Args:
        files: names of the checkpoint.
        batch: the metadata as of this batch count.

    Yields:
        the paths of files whose contents it needs next.
    """
    metadata = files.operator_metadata(batch)
    said = yield frozenset(metadata.values())
    known = {operator: stores for operator, path in metadata.items() if (stores := _stores(said.get(path)))}
    paths = {
        operator: _schema_files(files, operator, known.get(operator))
        for operator in sorted(files.operators() | set(known) | files.described())
    }
    said = yield frozenset(path for each in paths.values() for path in each.values())
    found = {}
    for operator, of_stores in paths.items():
        states = {}
        for store, path in of_stores.items():
            for schema in _schemas(said.get(path)):
                if not schema.internal:
                    states[store if schema.name == DEFAULT_STATE else f"{store}, {schema.name}"] = schema
        name = known[operator].name if operator in known else ""
        if name or states:
            found[operator] = Layout(operator, name, states)
    return found


def _schema_files(files: CheckpointFiles, operator: int, known: OperatorStores | None) -> dict[str, str]:
    """Return the file with the schemas of each store. There is a file for each version of them: the last one counts."""
    if known is not None and known.schemas:
        return {store: path for path in known.schemas for store in known.stores if f"/{store}/" in path}
    first = f"state/{operator}/0/"
    found = {}
    for path in files.schemas([operator]):
        if path.startswith(first):
            store = path.removeprefix(first).partition("_metadata")[0].rstrip("/")
            found[store or DEFAULT_STORE] = path
    return found


def _stores(data: bytes | None) -> OperatorStores | None:
    try:
        return contents.operator_stores(data) if data is not None else None
    except Unreadable:
        return None


def _schemas(data: bytes | None) -> list[StateSchema]:
    try:
        return state_schemas(data) if data is not None else []
    except Unreadable:
        return []
