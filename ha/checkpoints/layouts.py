"""Layouts: a query's operators with state and the names of their states, by number. Pure.

A checkpoint knows its operators by their numbers in the plan only. So a changed program's operators are compared, and
found again, by the names in its metadata and schemas.
"""

from collections.abc import Generator, Mapping

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import DEFAULT_STORE, CheckpointFiles
from ha.checkpoints.closure import Contents, Wanted
from ha.checkpoints.contents import OperatorStores
from ha.checkpoints.schemas import DEFAULT_STATE, StateSchema, state_schemas


class Layout(msgspec.Struct, frozen=True):
    """One operator with state."""

    id: int  # its number in the plan
    name: str  # of its kind, as Spark calls it; empty if its metadata are missing
    states: dict[str, StateSchema]  # schema of each state, by the name of its store and its own, where it has one


Layouts = Mapping[int, Layout]  # the operators of a query, by number


def layouts(files: CheckpointFiles, batch: int) -> Generator[Wanted, Contents, dict[int, Layout]]:
    """Read the layout of a checkpoint as of a batch; for :meth:`CheckpointReader.run`."""
    metadata = files.operator_metadata(batch)
    said = yield frozenset(metadata.values())
    read = {operator: contents.parsed(contents.operator_stores, said.get(path)) for operator, path in metadata.items()}
    known = {operator: stores for operator, stores in read.items() if stores is not None}
    paths = {
        operator: _schema_files(files, operator, known.get(operator))
        for operator in sorted(files.operators | set(known) | set(files.described))
    }
    said = yield frozenset(path for each in paths.values() for path in each.values())
    found = {}
    for operator, of_stores in paths.items():
        states = {}
        for store, path in of_stores.items():
            for schema in contents.parsed(state_schemas, said.get(path)) or ():
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
