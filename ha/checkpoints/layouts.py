"""Layouts: a query's operators with state and the names of their states, and how a changed program's differ. Pure.

A checkpoint knows its operators by their numbers in the plan only. So a changed program's operators are compared, and
found again, by the names in its metadata and schemas. Spark compares types only, where it compares at all: it accepts a
sum in the place of a count, and another grouping column of the same type. What Spark would find is compared as well.
"""

from collections.abc import Generator, Mapping, Sequence
from enum import StrEnum

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import DEFAULT_STORE, CheckpointFiles
from ha.checkpoints.closure import Contents, Wanted
from ha.checkpoints.contents import OperatorStores
from ha.checkpoints.schemas import DEFAULT_STATE, Field, StateSchema, state_schemas


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


_BEGIN_ANEW = "run the program that made it, or give the query another name to start it from scratch"
_SILENT = (
    "Spark would take the old values for it without an error: undo that, or give the query another name to start it "
    "from scratch; if it is only called otherwise, go on without the check"
)


class Kind(StrEnum):
    """What about the state has changed."""

    ADDED = "operator added"
    REMOVED = "operator removed"
    REPLACED = "operator replaced"
    TYPES = "types"
    NAMES = "names"


class Change(msgspec.Struct, frozen=True):
    """One difference between the checkpoint and the program."""

    kind: Kind  # what has changed
    operator: int  # number of the operator
    before: str  # what the checkpoint says; empty if that is nothing
    after: str  # what the program says; empty if that is nothing
    text: str  # a sentence for people
    remedy: str  # what to do

    @property
    def silent(self) -> bool:
        """Whether Spark resumes without an error, and the results are wrong."""
        return self.kind is Kind.NAMES


def changes(before: Layouts, after: Layouts) -> list[Change]:
    """Compare two layouts, operator by operator: of the checkpoint, and of a batch that the program has planned."""
    found = []
    for number in sorted(before.keys() | after.keys()):
        old, new = before.get(number), after.get(number)
        if old is not None and new is not None:
            found += _compare(old, new)
        elif old is not None:
            text = f"Operator {number} ({old.name or 'of an unknown kind'}) has state, and the program dropped it."
            found.append(Change(Kind.REMOVED, number, _said(old), "", text, _BEGIN_ANEW))
        elif new is not None:
            text = f"Operator {number} ({new.name}) is new, and there is no state for it."
            found.append(Change(Kind.ADDED, number, "", _said(new), text, _BEGIN_ANEW))
    return found


def _compare(old: Layout, new: Layout) -> list[Change]:
    if old.name and new.name and old.name != new.name:
        text = f"Operator {old.id} was {old.name}, and is {new.name} in the program."
        return [Change(Kind.REPLACED, old.id, _said(old), _said(new), text, _BEGIN_ANEW)]
    return [
        change
        for name in sorted(old.states.keys() | new.states.keys())
        if (change := _compare_states(old.id, name, old.states.get(name), new.states.get(name))) is not None
    ]


def _compare_states(operator: int, name: str, old: StateSchema | None, new: StateSchema | None) -> Change | None:
    before, after = (columns(each) if each is not None else "" for each in (old, new))
    if old is None or new is None:
        text = f"State {name!r} of operator {operator} is {'new' if old is None else 'gone'}."
        return Change(Kind.TYPES, operator, before, after, text, _BEGIN_ANEW)
    if (old.key, old.value) == (new.key, new.value):
        return None
    if _types(old) != _types(new):
        text = f"State {name!r} of operator {operator} has {before} in the checkpoint, and {after} in the program."
        return Change(Kind.TYPES, operator, before, after, text, _BEGIN_ANEW)
    text = f"State {name!r} of operator {operator} is {before} in the checkpoint, and {after} in the program."
    return Change(Kind.NAMES, operator, before, after, text, _SILENT)


def columns(schema: StateSchema) -> str:
    """Write a state as people read it: key columns, and value columns."""
    return f"{_fields(schema.key)} -> {_fields(schema.value)}"


def _fields(fields: Sequence[Field]) -> str:
    return ", ".join(f"{each.name} {each.type}" for each in fields) or "nothing"


def _types(schema: StateSchema) -> tuple[list[str], list[str]]:
    return [each.type for each in schema.key], [each.type for each in schema.value]


def _said(layout: Layout) -> str:
    states = "; ".join(f"{name}: {columns(schema)}" for name, schema in sorted(layout.states.items()))
    return f"{layout.name}: {states}" if layout.name else states
