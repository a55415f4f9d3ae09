"""Schemas: parses files of state schemas, in the versions 1 to 3 that Spark writes. Pure.

A state has a key and a value, each of named fields. transformWithState has one state for each variable of the program,
and keeps them all in one store, in column families of RocksDB.
"""

import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from ha.checkpoints.contents import Unreadable, decoded

DEFAULT_STATE = "default"  # name of the only state of a store that has no others
_MOST_CHUNKS = 1000  # chunks of 64 KB in one schema; a larger number is something else, read at the wrong place


class Field(msgspec.Struct, frozen=True):
    """One column: its name, and its type as SQL writes it."""

    name: str
    type: str


class StateSchema(msgspec.Struct, frozen=True):
    """One state of a store: its name, and the columns of key and value."""

    name: str
    key: list[Field]
    value: list[Field]

    @property
    def internal(self) -> bool:
        """Whether Spark keeps it for itself, such as the lengths of lists."""
        return self.name.startswith("$")


def state_schemas(data: bytes) -> list[StateSchema]:
    """Read a file of schemas; ``Unreadable`` if it has another form."""
    try:
        version = _Data(data).text()
        if version in ("v1", "v2"):
            return [_only_state(_Data(data), pieces=version == "v2")]
        if version != "v3":
            raise Unreadable(f"It is of version {version!r}, which is not known.")
        try:
            return _version_3(_Data(data), numbered=True)
        except (struct.error, ValueError):
            return _version_3(_Data(data), numbered=False)  # the first releases of Spark 4
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"It is no schema of a state ({error!r}).") from error


def _only_state(data: "_Data", *, pieces: bool) -> StateSchema:
    data.text()
    read = data.chunks if pieces else data.text
    return StateSchema(DEFAULT_STATE, _fields(read()), _fields(read()))


def _version_3(data: "_Data", *, numbered: bool) -> list[StateSchema]:
    data.text()
    found = []
    for _ in range(data.number(">i")):
        name = data.text()
        texts = []
        for _ in ("key", "value"):
            if numbered:
                data.number(">h")  # of this schema, among those that the state had
            texts.append(data.chunks())
        decoded(data.chunks())["keyStateEncoderType"]  # how keys are encoded
        data.chunks()  # the program's own key of a map, which is a part of the key
        found.append(StateSchema(name, *map(_fields, texts)))
    return found


def check_schemas(data: bytes, variables: Iterable[str] = ()) -> bool:
    """Check the form of a file of schemas, and that it has these; one of a version that is not known may have any."""
    try:
        known = _Data(data).text() in ("v1", "v2", "v3")
    except (struct.error, ValueError) as error:
        raise Unreadable("It is no schema of a state." if data else "It is empty.") from error
    if known and (lost := set(variables) - {each.name for each in state_schemas(data)}):
        raise Unreadable(f"It lacks the variable {min(lost)!r}, which the operator's metadata name.")
    return True


class _Data:
    """Java's ``DataInputStream``, as far as it is needed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: str) -> int:
        (found,) = struct.unpack_from(kind, self._data, self._at)
        self._at += struct.calcsize(kind)
        return int(found)

    def text(self) -> str:
        length = self.number(">H")
        text = self._data[self._at : self._at + length]
        if len(text) < length:
            raise Unreadable("It ends too early.")
        self._at += length
        return text.decode()

    def chunks(self) -> str:
        number = self.number(">i")
        if not 0 <= number <= _MOST_CHUNKS:
            raise Unreadable(f"It has {number} chunks in a schema.")
        return "".join(self.text() for _ in range(number))


def _fields(schema: str) -> list[Field]:
    return [Field(str(each["name"]), _type(each["type"])) for each in decoded(schema)["fields"]]


def _type(said: Any) -> str:
    """Write a type of Spark's JSON as SQL does."""
    if not isinstance(said, dict):
        return str({"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(said, said))
    kind = said["type"]
    if kind == "struct":
        fields = (f"{each['name']}: {_type(each['type'])}" for each in said["fields"])
        return f"struct<{', '.join(fields)}>"
    if kind == "array":
        return f"array<{_type(said['elementType'])}>"
    if kind == "map":
        return f"map<{_type(said['keyType'])}, {_type(said['valueType'])}>"
    return str(kind) if not isinstance(kind, dict) else _type(kind)
