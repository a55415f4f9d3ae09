"""Repartition: what is refused before Spark is asked, and which states are compared."""

import pytest

from ha.checkpoints.inspection import OperatorState, StoreState
from ha.checkpoints.schemas import Field, StateSchema
from ha.spark.checkpoint_tools.rescaling import _states, check
from store.errors import Invalid
from tests.unit.ha.spark.stored.test_stored_state import JOIN, PROCESSOR, SUM, inspection


def keyless(name: str, partitions: int, key: list[Field]) -> OperatorState:
    schema = StateSchema("default", key, [Field("sum", "bigint")])
    store = StoreState("default", partitions, None, None, None, 0, 0, None, None, [schema])
    return OperatorState(3, name, [store], {})


@pytest.mark.parametrize(
    ("operators", "kind", "said"),
    [
        ([], "RocksDB", "has no state"),
        ([SUM], "HDFSBackedStateStore", "HDFSBackedStateStore, which Spark cannot repartition. Nothing was changed"),
        ([SUM, keyless("stateStoreSave", 2, [])], "RocksDB", r"Operator 3 \(stateStoreSave\) has no key"),
        ([keyless("globalLimit", 2, [Field("key", "int")])], "RocksDB", "would lose it without a word"),
        ([keyless("stateStoreSave", 1, [Field("key", "int")])], "RocksDB", "all of its state is in one partition"),
    ],
)
def test_only_what_spark_would_wreck_or_lose_is_refused(operators: list[OperatorState], kind: str, said: str) -> None:
    for well in ([SUM, JOIN, PROCESSOR], [keyless("stateStoreSave", 2, [Field("key", "int")])]):
        check(inspection(*well, kind="RocksDB with ids"))
    with pytest.raises(Invalid, match=said):
        check(inspection(*operators, kind=kind))


def test_every_state_is_compared_and_timers_as_well() -> None:
    assert [(operator, state) for operator, state, _ in _states(inspection(SUM, JOIN, PROCESSOR))] == [
        (0, "default"),
        (1, "left"),
        (1, "right"),
        (2, "seen"),
        (2, "total"),
    ]
    internal = [StateSchema(each, [Field("key", "string")], []) for each in ("$eventTimers_keyToTimestamp", "open")]
    store = StoreState("default", 2, None, None, None, 0, 0, None, None, internal)
    timed = inspection(OperatorState(0, "transformWithStateExec", [store], {}))
    assert [(state, options.get("readRegisteredTimers")) for _, state, options in _states(timed)] == [
        ("open", None),
        ("timers", "true"),
    ]
