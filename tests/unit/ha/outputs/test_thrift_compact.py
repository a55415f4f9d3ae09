"""Thrift's compact form: what is read is written again byte by byte, and what is broken is refused."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.outputs.thrift_compact import (
    BINARY,
    BYTE,
    DEEPEST,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    SET,
    STRUCT,
    TRUE,
    UUID,
    Fields,
    Items,
    Pairs,
    Value,
    decoded,
    encoded,
)
from store.errors import Invalid

I64S = st.integers(-(1 << 63), (1 << 63) - 1)

SIMPLE: dict[int, st.SearchStrategy[Any]] = {
    BYTE: st.binary(min_size=1, max_size=1),
    I16: st.integers(-(1 << 15), (1 << 15) - 1),
    I32: st.integers(-(1 << 31), (1 << 31) - 1),
    I64: I64S,
    DOUBLE: st.binary(min_size=8, max_size=8),
    UUID: st.binary(min_size=16, max_size=16),
    BINARY: st.binary(max_size=200),
}


def values(contents: dict[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Value]:
    return st.one_of([content.map(partial(Value, kind)) for kind, content in contents.items()])


def structures(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Fields]:
    truths = st.sampled_from([Value(TRUE, None), Value(FALSE, None)])
    return st.dictionaries(st.integers(1, 400), truths | inner, max_size=6)


def grown(inner: st.SearchStrategy[Fields]) -> st.SearchStrategy[Fields]:
    contents = {**SIMPLE, STRUCT: inner}
    truths = {TRUE: st.sampled_from([1, 2])}
    items = st.one_of([
        st.lists(content, max_size=20).map(partial(Items, kind))
        for kind, content in {**contents, **truths}.items()
    ])  # fmt: skip
    pairs = st.lists(st.tuples(SIMPLE[BINARY], I64S), min_size=1, max_size=3).map(lambda each: Pairs(BINARY, I64, each))
    pairs |= st.just(Pairs(0, 0, []))
    return structures(values({**contents, LIST: items, SET: items, MAP: pairs}))


@given(st.recursive(structures(values(SIMPLE)), grown, max_leaves=6))
def test_what_is_written_is_read_again(fields: Fields) -> None:
    assert decoded(encoded(fields)) == fields
    assert list(decoded(encoded(fields))) == list(fields)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = decoded(data)
    except Invalid:
        return
    assert decoded(encoded(found)) == found


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        ({}, "00"),
        ({1: Value(I32, 0)}, "15 00 00"),
        ({1: Value(I32, -1), 16: Value(I32, 64)}, "15 01 f5 80 01 00"),
        ({1: Value(TRUE, None), 17: Value(FALSE, None)}, "11 02 22 00"),
        ({3: Value(LIST, Items(I32, [1] * 14))}, f"39 e5 {'02' * 14} 00"),
        ({3: Value(LIST, Items(I32, [1] * 15))}, f"39 f5 0f {'02' * 15} 00"),
        ({2: Value(BINARY, b"x" * 127)}, f"28 7f {'78' * 127} 00"),
        ({2: Value(BINARY, b"x" * 128)}, f"28 80 01 {'78' * 128} 00"),
        ({1: Value(MAP, Pairs(BINARY, I64, [(b"k", 1)]))}, "1b 01 86 01 6b 02 00"),
    ],
)
def test_the_form_is_that_of_the_specification(fields: Fields, data: str) -> None:
    assert encoded(fields) == bytes.fromhex(data)
    assert decoded(bytes.fromhex(data)) == fields


def nested(levels: int, kind: int) -> bytes:
    step = b"\x1c" if kind == STRUCT else b"\x19\x1c"
    return step * levels + b"\x00" * (levels + 1)


@pytest.mark.parametrize("kind", [STRUCT, LIST])
def test_too_many_levels_are_refused(kind: int) -> None:
    levels = DEEPEST if kind == STRUCT else DEEPEST // 2
    assert decoded(nested(levels, kind))
    with pytest.raises(Invalid, match="levels"):
        decoded(nested(levels + 1, kind))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "ends too early"),
        ("15", "ends too early"),
        ("15 00", "ends too early"),
        ("28 05 61", "ends too early"),
        ("39 f5 ff ff ff ff 07", "ends too early"),
        ("1b ff ff ff ff 07", "ends too early"),
        ("00 00", "1 bytes are left"),
        ("15 00 05 02 00 00", "there twice"),
        ("1e 00 00", "no type 14"),
        ("16 ff ff ff ff ff ff ff ff ff ff 01 00", "more than 64 bits"),
    ],
)
def test_what_is_broken_is_refused(data: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        decoded(bytes.fromhex(data))
