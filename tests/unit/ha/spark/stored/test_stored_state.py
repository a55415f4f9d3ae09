"""Stored state: which options and settings Spark needs to read it."""

import pytest

from ha.checkpoints.inspection import Inspection, OperatorState, StoreState
from ha.checkpoints.schemas import Field, StateSchema
from ha.spark.stored.stored_state import FORMAT, PROVIDER, choose, session_settings
from leader.errors import InvalidName


def store(name: str, *states: str) -> StoreState:
    schemas = [StateSchema(each, [Field("key", "string")], []) for each in states]
    return StoreState(name, 2, None, None, None, 0, 0, None, None, schemas)


def inspection(*operators: OperatorState, kind: str = "RocksDB") -> Inspection:
    return Inspection("id", [], 7, kind, 2, 0, {}, {"spark.sql.shuffle.partitions": "2"}, list(operators), 0, 0, 0, 0)


SUM = OperatorState(0, "stateStoreSave", [store("default", "default")], {})
JOIN = OperatorState(1, "symmetricHashJoin", [store("left", "default"), store("right", "default")], {})
PROCESSOR = OperatorState(2, "transformWithState", [store("default", "$rowCounter_seen", "seen", "total")], {})


def test_only_what_is_not_unique_needs_a_name() -> None:
    assert choose(inspection(SUM), None, None) == {"batchId": "7", "operatorId": "0"}
    found = inspection(SUM, JOIN, PROCESSOR)
    assert choose(found, 1, "left") == {"batchId": "7", "operatorId": "1", "storeName": "left"}
    assert choose(found, 2, "total") == {"batchId": "7", "operatorId": "2", "stateVarName": "total"}
    feed = {"readChangeFeed": "true", "changeStartBatchId": "7", "changeEndBatchId": "7"}
    assert choose(inspection(SUM), None, None, changes=True) == {"operatorId": "0", **feed}
    with pytest.raises(InvalidName, match="has no state"):
        choose(inspection(), None, None)


@pytest.mark.parametrize(
    ("operator", "state", "said"),
    [
        (None, None, "choose with --operator one of 0 (stateStoreSave), 1 (symmetricHashJoin), 2 (transformWithState)"),
        (5, None, "no operator 5 with state: it has 0 (stateStoreSave)"),
        (1, None, "has several states: choose with --store one of left, right"),
        (1, "middle", "has no state 'middle': choose with --store one of left, right"),
        (2, "$rowCounter_seen", "choose with --store one of seen, total"),
    ],
)
def test_what_is_not_unique_or_there_is_told(operator: int | None, state: str | None, said: str) -> None:
    with pytest.raises(InvalidName) as refused:
        choose(inspection(SUM, JOIN, PROCESSOR), operator, state)
    assert said in str(refused.value)


def test_the_session_gets_the_settings_of_the_checkpoint() -> None:
    ids = session_settings(inspection(kind="RocksDB with ids"))
    assert (ids["spark.sql.shuffle.partitions"], ids[FORMAT]) == ("2", "2")
    assert ids[PROVIDER].endswith("RocksDBStateStoreProvider")
    assert session_settings(inspection())[FORMAT] == "1"
    old = session_settings(inspection(kind="HDFSBackedStateStore"))
    assert (old[FORMAT], PROVIDER in old) == ("1", False)
