"""Schemas: the three versions of Spark's files, as real Sparks have written them."""

import struct

import pytest

from ha.checkpoints.contents import Unreadable
from ha.checkpoints.schemas import Field, StateSchema, check_schemas, state_schemas
from tests.unit.ha.checkpoints.simulated_spark import utf

KEY = (
    '{"type":"struct","fields":[{"name":"window","type":{"type":"struct","fields":['
    '{"name":"start","type":"timestamp","nullable":true,"metadata":{}}]},"nullable":false,"metadata":{}}]}'
)
VALUE = (
    '{"type":"struct","fields":[{"name":"counts","type":{"type":"map","keyType":"string","valueType":'
    '{"type":"array","elementType":"long","containsNull":true}},"nullable":true,"metadata":{}}]}'
)
KEYS = [Field("window", "struct<start: timestamp>")]
VALUES = [Field("counts", "map<string, array<bigint>>")]


def chunks(*texts: str) -> bytes:
    return struct.pack(">i", len(texts)) + b"".join(map(utf, texts))


ENCODER = '{"keyStateEncoderType":"NoPrefixKeyStateEncoderSpec"}'


def state(name: str, *, numbered: bool = True, encoded: str = ENCODER) -> bytes:
    number = struct.pack(">h", 0) if numbered else b""
    encoder = chunks(encoded)
    return utf(name) + number + chunks(KEY) + number + chunks(VALUE) + encoder + chunks("{    }")


def test_version_1_has_two_texts() -> None:
    assert state_schemas(utf("v1") + utf(KEY) + utf(VALUE)) == [StateSchema("default", KEYS, VALUES)]


def test_version_2_has_texts_of_any_length_in_pieces() -> None:
    data = utf("v2") + chunks(KEY[:50], KEY[50:]) + chunks(VALUE)
    assert state_schemas(data) == [StateSchema("default", KEYS, VALUES)]


@pytest.mark.parametrize("numbered", [True, False])
def test_version_3_has_a_schema_for_each_variable(numbered: bool) -> None:
    data = utf("v3") + struct.pack(">i", 2) + state("$rowCounter_seen", numbered=numbered)
    found = state_schemas(data + state("seen", numbered=numbered))
    assert [(each.name, each.internal) for each in found] == [("$rowCounter_seen", True), ("seen", False)]
    assert found[1] == StateSchema("seen", KEYS, VALUES)


def test_a_schema_says_how_keys_are_encoded_and_has_all_variables() -> None:
    """Spark fails without either."""
    head = utf("v3") + struct.pack(">i", 1)
    with pytest.raises(Unreadable, match="keyStateEncoderType"):
        check_schemas(head + state("seen", encoded=ENCODER.replace("key", "kez")))
    assert check_schemas(head + state("seen"), ["seen"])
    with pytest.raises(Unreadable, match="lacks the variable 'seen'"):
        check_schemas(head + state("sefn"), ["seen"])


@pytest.mark.parametrize(
    "data",
    [b"", utf("v4"), utf("v1") + utf(KEY), utf("v2") + chunks("[]"), utf("v3") + b"\0\0\0\1", utf("v2") + b"\xff"],
)
def test_what_is_no_schema_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        state_schemas(data)
