"""Layouts and changes: what a program has in the place of what its checkpoint says, by names."""

import json
from collections.abc import Mapping

import pytest

from ha.checkpoints.layouts import Kind, Layout, changes, layouts
from ha.checkpoints.schemas import Field, StateSchema
from tests.unit.ha.checkpoints.simulated_spark import utf
from tests.unit.ha.checkpoints.test_closure import given_files, names
from tests.unit.ha.checkpoints.test_schemas import state

SAVE, DEDUPE = "stateStoreSave", "dedupe"


def struct_of(**fields: str) -> str:
    said = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()]
    return json.dumps({"type": "struct", "fields": said})


def schema(key: str, value: str) -> bytes:
    return utf("v1") + utf(key) + utf(value)


def metadata(name: str, *stores: str) -> bytes:
    said = [{"storeName": each, "numPartitions": 2} for each in stores]
    return f"v1\n{json.dumps({'operatorInfo': {'operatorName': name}, 'stateStoreInfo': said})}".encode()


def read(files: Mapping[str, bytes], batch: int = 5) -> dict[int, Layout]:
    return given_files(layouts(names(files), batch), files)


COUNT = schema(struct_of(user="string"), struct_of(count="long"))
COUNTS = StateSchema("default", [Field("user", "string")], [Field("count", "bigint")])


def layout(number: int = 0, name: str = SAVE, **states: StateSchema) -> dict[int, Layout]:
    return {number: Layout(number, name, states or {"default": COUNTS})}


def test_a_layout_is_read_from_metadata_and_schemas_even_without_a_version_of_state() -> None:
    files = {"state/3/_metadata/metadata": metadata(SAVE, "default"), "state/3/0/_metadata/schema": COUNT}
    assert read(files) == layout(3)


def test_stores_have_schemas_of_their_own_and_only_those_of_the_first_partition_are_read() -> None:
    files = {
        "state/0/_metadata/metadata": metadata("join", "left", "right"),
        **{f"state/0/0/{each}/_metadata/schema": COUNT for each in ("left", "right")},
        "state/0/1/left/_metadata/schema": b"damaged",
    }
    assert read(files) == layout(0, "join", left=COUNTS, right=COUNTS)


def test_variables_are_states_and_the_newest_schema_of_the_metadata_counts() -> None:
    data = utf("v3") + (2).to_bytes(4, "big") + state("total") + state("$rows")
    paths = [f"hdfs://h/x/state/0/_stateSchema/default/{each}" for each in ("1_a", "2_b")]
    stores = [{"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": paths}]
    said = f"v2\n{json.dumps({'operatorInfo': {'operatorName': 'tws'}, 'stateStoreInfo': stores})}".encode()
    files = {
        "state/0/_metadata/v2/0": b"old",
        "state/0/_metadata/v2/3": said,
        "state/0/_metadata/v2/9": b"later",
        "state/0/_stateSchema/default/1_a": b"old",
        "state/0/_stateSchema/default/2_b": data,
    }
    (found,) = read(files).values()
    assert (found.name, list(found.states)) == ("tws", ["default, total"])


def test_what_says_nothing_is_no_operator() -> None:
    assert (
        read({"state/0/0/1.delta": b"", "state/1/_metadata/metadata": b"?", "state/2/0/_metadata/schema": b"?"}) == {}
    )


def test_without_metadata_an_operator_has_no_name_and_its_states_count() -> None:
    assert read({"state/0/0/_metadata/schema": COUNT}) == layout(0, "")
    assert changes(layout(0, ""), layout()) == []


def test_the_same_has_no_changes() -> None:
    assert changes(layout(), layout()) == []
    assert changes({}, {}) == []


@pytest.mark.parametrize(
    ("after", "kind", "silent"),
    [
        (StateSchema("default", [Field("item", "string")], COUNTS.value), Kind.NAMES, True),
        (StateSchema("default", COUNTS.key, [Field("sum", "bigint")]), Kind.NAMES, True),
        (StateSchema("default", [Field("user", "bigint")], COUNTS.value), Kind.TYPES, False),
        (StateSchema("default", COUNTS.key, [Field("count", "int")]), Kind.TYPES, False),
        (StateSchema("default", COUNTS.key, [*COUNTS.value, Field("max", "int")]), Kind.TYPES, False),
        (StateSchema("default", [], COUNTS.value), Kind.TYPES, False),
    ],
)
def test_names_are_compared_and_types(after: StateSchema, kind: Kind, *, silent: bool) -> None:
    (found,) = changes(layout(), layout(default=after))
    assert (found.kind, found.silent, found.operator) == (kind, silent, 0)
    assert found.before == "user string -> count bigint"
    assert "user string -> count bigint" in found.text
    assert found.remedy


def test_an_order_of_columns_is_a_change_of_names() -> None:
    two = [Field("a", "int"), Field("b", "int")]
    before, after = (StateSchema("default", each, COUNTS.value) for each in (two, two[::-1]))
    assert [each.kind for each in changes(layout(default=before), layout(default=after))] == [Kind.NAMES]


def test_operators_come_go_and_are_replaced() -> None:
    both = {**layout(), **layout(1, DEDUPE)}
    assert [each.kind for each in changes(layout(), both)] == [Kind.ADDED]
    assert [each.kind for each in changes(both, layout())] == [Kind.REMOVED]
    assert [each.kind for each in changes(layout(), layout(0, DEDUPE))] == [Kind.REPLACED]


def test_a_variable_that_comes_or_goes_is_a_change() -> None:
    more = layout(total=COUNTS, last=COUNTS)
    assert [(each.kind, each.after) for each in changes(more, layout(total=COUNTS))] == [(Kind.TYPES, "")]
    assert [(each.kind, each.before) for each in changes(layout(total=COUNTS), more)] == [(Kind.TYPES, "")]
