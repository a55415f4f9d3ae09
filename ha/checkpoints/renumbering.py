"""Renumbering: the operators of a checkpoint under the numbers that a changed program gives them. Pure.

Spark finds the state of an operator by its number in the plan, and a change elsewhere in the program may have moved the
numbers. Operators are found again by their kind, and by the names and types of their columns.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ha.checkpoints.contents import Json, Unreadable
from ha.checkpoints.layouts import Layout, Layouts, columns
from store.errors import HaError

Numbers = Mapping[int, int]  # the new number of each operator, by its old one
_OPERATOR = re.compile(r"state/([0-9]+)(/.*)")
_SCHEMA = re.compile(r"(.*/state/)([0-9]+)(/_stateSchema/.*)")
_REWRITTEN = re.compile(r"commits/[0-9]+|state/[0-9]+/_metadata/(?:metadata|v2/[0-9]+)")


class Doubt(HaError, ValueError):
    """The operators cannot be matched without doubt; the text shows both sides."""


def match(before: Layouts, after: Layouts) -> dict[int, int]:
    """Return the program's number of each operator of a checkpoint, by its old number."""
    # Doubt: an operator has no counterpart, or more than one, or nothing says what it is.
    old, new = _alike(before.values()), _alike(after.values())
    reasons = []
    for signature in [*old, *(each for each in new if each not in old)]:
        ours, theirs = old.get(signature, []), new.get(signature, [])
        if len(ours) != 1 or len(theirs) != 1 or not signature[0] or not signature[1]:
            reasons.append(
                f"{signature[0] or 'of an unknown kind'}: {_numbers(ours)} in the checkpoint, {_numbers(theirs)} in "
                "the program"
            )
    if reasons:
        sides = [f"  {side}: {_shown(layouts)}" for side, layouts in (("checkpoint", before), ("program", after))]
        raise Doubt(
            "\n".join(["The operators cannot be matched without doubt.", *(f"  {each}" for each in reasons), *sides])
        )
    return {ours[0].id: new[signature][0].id for signature, ours in old.items()}


def renumbered_path(path: str, numbers: Numbers) -> str:
    """Return the path of a file of the checkpoint under the new numbers."""
    found = _OPERATOR.fullmatch(path)
    return f"state/{numbers.get(int(found[1]), int(found[1]))}{found[2]}" if found else path


def is_rewritten(path: str) -> bool:
    """Whether a file says numbers of operators itself."""
    return bool(_REWRITTEN.fullmatch(path))


def rewritten(data: bytes, numbers: Numbers) -> bytes:
    """Return the content of such a file under the new numbers; ``Unreadable`` if it has another form."""
    version, _, text = data.partition(b"\n")
    try:
        said = msgspec.json.decode(text, type=Json)
        if ids := said.get("stateUniqueIds"):
            said["stateUniqueIds"] = {str(numbers.get(int(each), int(each))): value for each, value in ids.items()}
        if operator := said.get("operatorInfo"):
            operator["operatorId"] = numbers.get(operator["operatorId"], operator["operatorId"])
        for store in said.get("stateStoreInfo", ()):
            if paths := store.get("stateSchemaFilePaths"):
                store["stateSchemaFilePaths"] = [_schema_path(each, numbers) for each in paths]
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"It says no numbers of operators as this version knows them ({error!r}).") from error
    return version + b"\n" + msgspec.json.encode(said)


def _schema_path(path: str, numbers: Numbers) -> str:
    found = _SCHEMA.fullmatch(path)
    return f"{found[1]}{numbers.get(int(found[2]), int(found[2]))}{found[3]}" if found else path


def _alike(layouts: Iterable[Layout]) -> dict[tuple[str, Any], list[Layout]]:
    """Group operators by what they are."""
    found = defaultdict(list)
    for each in layouts:
        states = frozenset((name, columns(schema)) for name, schema in each.states.items())
        found[each.name, states].append(each)
    return dict(found)


def _numbers(layouts: Iterable[Layout]) -> str:
    return ", ".join(f"operator {each.id}" for each in layouts) or "none"


def _shown(layouts: Layouts) -> str:
    said = []
    for number, each in sorted(layouts.items()):
        states = "; ".join(f"{name}: {columns(schema)}" for name, schema in sorted(each.states.items()))
        said.append(f"{number} is {each.name or 'of an unknown kind'} ({states})")
    return ", ".join(said) or "no operator with state"
