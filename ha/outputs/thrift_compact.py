"""Thrift's compact form: bytes to numbered fields and back, whatever they mean. Pure.

Who changes some fields of a structure that it does not know by heart has to keep all others as they are. The form is
that of https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md, as Parquet's footers use it.
"""

from typing import Any, NamedTuple

from store.errors import Invalid

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)

DEEPEST = 64
"""Levels of structures in structures; Parquet's schema is a list, and has few."""

_TOO_DEEP = f"It has more than {DEEPEST} levels."

_LONGEST_VARINT = 10
"""Bytes of a number with 64 bits."""

_FIXED = {BYTE: 1, DOUBLE: 8, UUID: 16}
"""Bytes of what is kept as it is."""


class Value(NamedTuple):
    """One value.

    Attributes:
        kind: its type, as the form numbers it; a truth is TRUE or FALSE.
        content: an integer, bytes, :class:`Items` of a list or set, :class:`Pairs` of a map, or ``Fields``.
    """

    kind: int
    content: Any


class Items(NamedTuple):
    """A list or a set: the type of its elements, and their contents."""

    kind: int
    contents: list[Any]


class Pairs(NamedTuple):
    """A map: the types of its keys and values, and their contents."""

    keys: int
    values: int
    contents: list[tuple[Any, Any]]


Fields = dict[int, Value]
"""A structure: its fields by their numbers, in the order in which they came."""


def decoded(data: bytes) -> Fields:
    """Read a structure, which has to be all there is.

    Raises:
        Invalid: it is none.
    """
    reader = _Reader(data)
    try:
        found = reader.fields(0)
    except IndexError as error:
        raise Invalid("It ends too early.") from error
    if reader.at != len(data):
        raise Invalid(f"{len(data) - reader.at} bytes are left.")
    return found


def encoded(fields: Fields) -> bytes:
    """Write a structure."""
    out = bytearray()
    _write_fields(out, fields)
    return bytes(out)


class _Reader:
    """Reads from the front; an IndexError says that the end was met."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def fields(self, depth: int) -> Fields:
        if depth > DEEPEST:
            raise Invalid(_TOO_DEEP)
        found: Fields = {}
        number = 0
        while header := self._byte():
            kind, step = header & 15, header >> 4
            number = number + step if step else _signed(self._varint())
            if number in found:
                raise Invalid(f"Field {number} is there twice.")
            found[number] = Value(kind, None if kind in (TRUE, FALSE) else self._content(kind, depth))
        return found

    def _content(self, kind: int, depth: int) -> Any:
        if kind in (I16, I32, I64):
            return _signed(self._varint())
        if kind == BINARY or kind in _FIXED:
            return self._bytes(_FIXED.get(kind) or self._varint())
        if kind in (TRUE, FALSE):  # as an element
            return self._byte()
        nested = {STRUCT: self.fields, LIST: self._items, SET: self._items, MAP: self._pairs}.get(kind)
        if nested is None:
            raise Invalid(f"There is no type {kind}.")
        return nested(depth + 1)

    def _items(self, depth: int) -> Items:
        if depth > DEEPEST:
            raise Invalid(_TOO_DEEP)
        header = self._byte()
        kind, count = header & 15, header >> 4
        if count == 15:  # noqa: PLR2004  # four bits
            count = self._varint()
        return Items(kind, [self._content(kind, depth) for _ in range(self._checked(count))])

    def _pairs(self, depth: int) -> Pairs:
        if depth > DEEPEST:
            raise Invalid(_TOO_DEEP)
        count = self._checked(self._varint())
        if not count:
            return Pairs(0, 0, [])
        header = self._byte()
        keys, values = header >> 4, header & 15
        return Pairs(keys, values, [(self._content(keys, depth), self._content(values, depth)) for _ in range(count)])

    def _checked(self, count: int) -> int:
        if count > len(self._data) - self.at:  # each element takes a byte at least
            raise IndexError
        return count

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        end = self.at + self._checked(count)
        found, self.at = self._data[self.at : end], end
        return found

    def _varint(self) -> int:
        found = 0
        for place in range(_LONGEST_VARINT):
            byte = self._byte()
            found |= (byte & 127) << (7 * place)
            if byte < 128:  # noqa: PLR2004  # the highest bit says that more follows
                return found
        raise Invalid("A number has more than 64 bits.")


def _write_fields(out: bytearray, fields: Fields) -> None:
    last = 0
    for number, (kind, content) in fields.items():
        step = number - last
        if 0 < step < 16:  # noqa: PLR2004  # four bits
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            _write_varint(out, _unsigned(number))
        last = number
        if kind not in (TRUE, FALSE):
            _write(out, kind, content)
    out.append(0)


def _write(out: bytearray, kind: int, content: Any) -> None:
    if kind in (I16, I32, I64):
        _write_varint(out, _unsigned(content))
    elif kind == BINARY:
        _write_varint(out, len(content))
        out += content
    elif kind in _FIXED:
        out += content
    elif kind == STRUCT:
        _write_fields(out, content)
    elif kind == MAP:
        _write_pairs(out, content)
    elif kind in (LIST, SET):
        _write_items(out, content)
    else:
        out.append(content)


def _write_items(out: bytearray, items: Items) -> None:
    count = len(items.contents)
    if count < 15:  # noqa: PLR2004  # four bits, and 15 says that the number follows
        out.append(count << 4 | items.kind)
    else:
        out.append(15 << 4 | items.kind)
        _write_varint(out, count)
    for each in items.contents:
        _write(out, items.kind, each)


def _write_pairs(out: bytearray, pairs: Pairs) -> None:
    _write_varint(out, len(pairs.contents))
    if pairs.contents:
        out.append(pairs.keys << 4 | pairs.values)
    for key, value in pairs.contents:
        _write(out, pairs.keys, key)
        _write(out, pairs.values, value)


def _write_varint(out: bytearray, number: int) -> None:
    while number > 127:  # noqa: PLR2004  # seven bits
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _signed(number: int) -> int:
    """Zigzag: 0, 1, 2, 3 are 0, -1, 1, -2."""
    return number >> 1 ^ -(number & 1)


def _unsigned(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1
