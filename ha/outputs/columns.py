"""Columns: the types that an output's files have, so that no batch is added that readers cannot read with the others.

Parquet, ORC and Avro files say the types of their columns, and Spark's readers take the types of one file for all:
another file with another type fails them, for old rows too. A column that is new, or left out, does not.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from leader.errors import InvalidSettings
from leader.layout.packed_names import read, written

TYPED = ("parquet", "orc", "avro")
"""Formats of files that say the types of their columns."""

TYPES = "types"
"""First word of the names that hold the types, in a folder ``types=<times>`` of the output's."""

Types = Mapping[str, Any]
"""By column its type, as Spark names it; of a struct the columns, of an array and a map what is in them."""


def types_of(schema: Mapping[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the types of the columns of ``schema.jsonValue()``; columns of partitions are in no file."""
    left_out = {each.lower() for each in without}
    return {each["name"]: _plain(each["type"]) for each in schema["fields"] if each["name"].lower() not in left_out}


def _plain(kind: Any) -> Any:
    """Leave out what readers do not mind: whether a value may be null, and comments."""
    match kind:
        case {"type": "struct"}:
            return {"struct": types_of(kind)}
        case {"type": "array"}:
            return {"array": _plain(kind["elementType"])}
        case {"type": "map"}:
            return {"map": [_plain(kind["keyType"]), _plain(kind["valueType"])]}
        case {"type": "udt"}:
            return _plain(kind["sqlType"])
    return kind


def clash(known: Any, asked: Any, path: str = "") -> tuple[str, str, str] | None:
    """Return the first column whose two types no reader takes both: its path, and each; None if there is none.

    Spark's readers do not tell capital letters from small ones.
    """
    match known, asked:
        case {"struct": one}, {"struct": other}:
            return clash_of(one, other, f"{path}.")
        case {"array": one}, {"array": other}:
            return clash(one, other, f"{path}.element")
        case {"map": [key, value]}, {"map": [other_key, other_value]}:
            return clash(key, other_key, f"{path}.key") or clash(value, other_value, f"{path}.value")
    return None if known == asked else (path, _shown(known), _shown(asked))


def clash_of(known: Types, asked: Types, path: str = "") -> tuple[str, str, str] | None:
    """Return the first clash of the columns of two batches."""
    before = {name.lower(): kind for name, kind in known.items()}
    pairs = ((before[name.lower()], kind, f"{path}{name}") for name, kind in asked.items() if name.lower() in before)
    return next((found for pair in pairs if (found := clash(*pair))), None)


def _shown(kind: Any) -> str:
    return kind if isinstance(kind, str) else next(iter(kind))


def merged(known: Types, asked: Types) -> dict[str, Any]:
    """Return the types of both, which do not clash: the columns that are new come last."""
    found, names = dict(known), {name.lower(): name for name in known}
    for name, kind in asked.items():
        before = names.get(name.lower())
        found[before or name] = kind if before is None else _both(found[before], kind)
    return found


def _both(known: Any, asked: Any) -> Any:
    match known, asked:
        case {"struct": one}, {"struct": other}:
            return {"struct": merged(one, other)}
        case {"array": one}, {"array": other}:
            return {"array": _both(one, other)}
        case {"map": one}, {"map": other}:
            return {"map": [_both(*each) for each in zip(one, other, strict=True)]}
    return known


def keep_types(folder: OutputFolder, asked: Types) -> None:
    """Refuse types that clash with those that an output keeps, else keep those that are new: two lists if none is."""
    # InvalidSettings: a column has another type in the batches that are there. Unreadable: what is kept is damaged.
    times = max(layout.numbers(f"{TYPES}=", folder.names()), default=0)
    before = f"{TYPES}={times}"
    known = (read(TYPES, dict[str, Any], folder.names(before)) if times else None) or {}
    if (found := clash_of(known, asked)) is not None:
        path, was, now = found
        raise InvalidSettings(
            f"Column {path!r} of output {folder.name!r} has type {was} in the batches that are there, and "
            f"this program would add {now}: no reader takes both. Cast it to {was}, give the column another name, "
            "or give the output another directory."
        )
    if (together := merged(known, asked)) == known:
        return
    renames, staged = folder.renames, folder.at(layout.STAGED, f"{TYPES}-{uuid.uuid4().hex}")
    renames.make_folders(staged)
    folder.keep(staged, written(TYPES, together))
    renames.move(staged, folder.at(f"{TYPES}={times + 1}"))
    if times:
        renames.remove(folder.at(before))
