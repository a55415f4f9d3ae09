"""Stored state: the keys and values in a checkpoint's state stores, read by Spark's own state data source (Spark 4).

The source needs what the checkpoint does not tell it: the format in the session's settings, the store of a join, the
variable of transformWithState. All of that is in the inspection. Nothing is written below the checkpoint.
A tool reads with a Spark of this host, which it starts and ends; that one says nothing and serves nobody.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from ha.checkpoints.inspection import Inspection, OperatorState
from ha.checkpoints.schemas import DEFAULT_STATE, StateSchema
from leader.errors import InvalidName

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"

QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}

KEYS = ("key", "user_map_key")
"""Columns of the data source that make up a key; the second one is of a map of transformWithState."""


def choose(found: Inspection, operator: int | None, store: str | None, *, changes: bool = False) -> dict[str, str]:
    """Return the options of the data source for the state that is meant; what is unique need not be named."""
    # The store is one of a join, or a variable of transformWithState. With `changes` the changes of the batch are read,
    # instead of the whole state after it. Raises `InvalidName` if there is no such state, or several; it names them.
    chosen = _operator(found, operator)
    states = states_of(chosen)
    options = {"batchId": f"{found.batch}", "operatorId": f"{chosen.id}"}
    if changes:
        options = {"operatorId": f"{chosen.id}", "readChangeFeed": "true", "changeStartBatchId": f"{found.batch}"}
        options["changeEndBatchId"] = f"{found.batch}"
    name = store if store is not None or len(states) != 1 else next(iter(states))
    if name is None or name not in states:
        known = ", ".join(sorted(states))
        said = f"has no state {name!r}" if name is not None else "has several states"
        raise InvalidName(f"Operator {chosen.id} ({chosen.name}) {said}: choose with --store one of {known}.")
    within, state = states[name]
    if state.name != DEFAULT_STATE:
        options["stateVarName"] = state.name
    elif within != DEFAULT_STATE:
        options["storeName"] = within
    return options


def states_of(operator: OperatorState) -> dict[str, tuple[str, StateSchema]]:
    """Return the store and the schema of each state of an operator that is not Spark's own, by what people call it."""
    return {
        (each.name if state.name == DEFAULT_STATE else state.name): (each.name, state)
        for each in operator.stores
        for state in each.states or [StateSchema(DEFAULT_STATE, [], [])]
        if not state.internal
    }


def session_settings(found: Inspection) -> dict[str, str]:
    """Return the settings without which Spark cannot read a checkpoint."""
    frozen = dict(found.settings)
    if found.format.startswith("RocksDB"):
        frozen |= {PROVIDER: ROCKSDB, CHANGELOG: "true"}
    return {**frozen, FORMAT: "2" if found.format == "RocksDB with ids" else "1"}


def session(found: Inspection) -> AbstractContextManager[SparkSession]:
    """Start a Spark on this host that can read a checkpoint; it ends with the block."""
    return local_session("ha checkpoint state", session_settings(found))


def rows(
    spark: SparkSession, uri: str, options: Mapping[str, str], where: Mapping[str, str], limit: int
) -> tuple[list[dict[str, Any]], bool]:
    """Read so many keys and their values; return the rows, and whether there are more."""
    # `where` means only keys whose columns have these values, as text; a part of a column is `window.start`.
    frame = spark.read.format("statestore").options(**options).load(uri)
    parts = {
        name: each.name
        for each in frame.schema.fields
        if each.name in KEYS and isinstance(each.dataType, StructType)
        for name in each.dataType.fieldNames()
    }
    for column, value in where.items():
        part = parts.get(column.partition(".")[0])
        if part is None:
            raise InvalidName(f"The key has no column {column!r}: it has {', '.join(parts)}.")
        path = ".".join(f"`{each}`" for each in (part, *column.split(".")))
        frame = frame.where(fn.col(path).cast("string") == value)
    texts = frame.select(fn.to_json(fn.struct("*"))).limit(limit + 1).collect()
    found = [msgspec.json.decode(each[0]) for each in texts]
    return found[:limit], len(found) > limit


def _operator(found: Inspection, wanted: int | None) -> OperatorState:
    there = {each.id: each for each in found.operators}
    known = ", ".join(f"{each.id} ({each.name})" for each in found.operators) or "none"
    if wanted is None and len(there) != 1:
        said = (
            "has several operators with state: choose with --operator one of" if there else "has no state; operators:"
        )
        raise InvalidName(f"The query {said} {known}.")
    number = wanted if wanted is not None else next(iter(there))
    if number not in there:
        raise InvalidName(f"The query has no operator {number} with state: it has {known}.")
    return there[number]


@contextmanager
def local_session(name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Start a Spark with these settings; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="ha-spark-") as folder:
        folders = {"spark.sql.warehouse.dir": folder, "spark.local.dir": folder}
        builder = SparkSession.builder.master("local[*]").appName(name)
        spark = builder.config(map={**QUIET, **(settings or {}), **folders}).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


def meaning(error: Exception) -> str:
    """Return the line of an error of Spark that says what it is."""
    lines = str(error).splitlines()
    return next((each for each in lines if "[" in each), lines[0] if lines else type(error).__name__)
