"""Repartition: has Spark give the state of a checkpoint another number of partitions, and compares both states.

Spark's own call adds a batch without input to the checkpoint, with the state in the new partitions. It does so in
place, and what it refuses or what a crash interrupts leaves a checkpoint with which no query starts: so it gets a copy.
An operator whose state is in a single partition, whatever the setting says, would lose it without a word.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from ha.checkpoints.inspection import Inspection
from ha.checkpoints.state_versions import SINGLE_PARTITION
from ha.spark.session.private_names import checkpoint_manager
from ha.spark.session.spark_session import configured
from ha.spark.stored.stored_state import choose, states_of
from store.errors import Conflict, Invalid

Told = Callable[[str], object]

TOLD_EVERY_S = 1.0

HASH_ANYTHING = {"spark.sql.legacy.allowHashOnMapType": "true"}
"""Spark forbids it, because equal maps may be written in another order; here the bytes themselves are the same."""

_TIMERS = ("$procTimers", "$eventTimers")


class ComparedStates(msgspec.Struct, frozen=True):
    """One state before and after."""

    operator: int  # number of the operator
    state: str  # the store of a join, the variable of transformWithState, `timers`, or `default`
    keys: int  # number of its pairs of keys and values, which is the same in both
    hash: str | None  # sum of the hashes of all pairs, the same in both; null if they were only counted


def check(found: Inspection) -> None:
    """Raise ``Invalid`` for a checkpoint whose state cannot be repartitioned, as far as its files tell."""
    if not found.operators:
        raise Invalid("The query has no state, so no number of partitions is frozen in its checkpoint: set another.")
    if found.format == "HDFSBackedStateStore":
        raise Invalid(
            "The query keeps its state in HDFSBackedStateStore, which Spark cannot repartition. Nothing was changed. "
            "Only a new query, with another name, can have another number of partitions; let it keep its state in "
            "RocksDB."
        )
    for operator in found.operators:
        keyless = any(not each.key for store in operator.stores for each in store.states if not each.internal)
        single = any(store.partitions != found.partitions for store in operator.stores)
        if keyless or single or operator.name in SINGLE_PARTITION:
            raise Invalid(
                f"Operator {operator.id} ({operator.name}) has no key, so all of its state is in one partition, and "
                "Spark's repartition would lose it without a word. Nothing was changed."
            )


def repartition(spark: SparkSession, uri: str, partitions: int, told: Told = bool) -> None:
    """Repartition a checkpoint in place: of this only a copy should be given."""
    # The session has `ha.spark.stored.stored_state.session_settings`. `told` gets the progress, a sentence, about once
    # in a second, from any thread.
    manager = checkpoint_manager(spark)
    with _progress(spark, f"Spark writes {partitions} partitions", told):
        manager.repartition(uri, partitions)


def compare(
    spark: SparkSession, uri: str, found: Inspection, after: int, *, deep: bool, told: Told = bool
) -> list[ComparedStates]:
    """Compare every state of a checkpoint after two batches: how many keys with their values; with ``deep`` which."""
    # `found` is its inspection, as of the first batch. Raises `Conflict` if the states differ. The session and `told`
    # are those of `repartition`.
    compared = []
    with configured(spark, HASH_ANYTHING):
        for operator, state, options in _states(found):
            with _progress(spark, f"comparing {state} of operator {operator}", told):
                old, new = (
                    _summed(spark, uri, {**options, "batchId": f"{batch}"}, deep=deep) for batch in (found.batch, after)
                )
            if old != new:
                raise Conflict(
                    f"Spark's repartition has changed the state {state!r} of operator {operator}: it has {new[0]} keys "
                    f"instead of {old[0]}, or other values. Nothing was changed in the job."
                )
            compared.append(ComparedStates(operator, state, *new))
    return compared


def _states(found: Inspection) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield the operator, the name, and the options of the data source, of every state."""
    for operator in found.operators:
        for name in states_of(operator):
            yield operator.id, name, choose(found, operator.id, name)
        if any(state.name.startswith(_TIMERS) for store in operator.stores for state in store.states):
            yield operator.id, "timers", {"operatorId": f"{operator.id}", "readRegisteredTimers": "true"}


def _summed(spark: SparkSession, uri: str, options: dict[str, str], *, deep: bool) -> tuple[int, str | None]:
    frame = spark.read.format("statestore").options(**options).load(uri)
    if not deep:
        return frame.count(), None
    columns = [each for each in frame.columns if each != "partition_id"]
    summed = fn.sum(fn.xxhash64(*columns).cast("decimal(38,0)"))  # of a set: in any order
    (row,) = frame.agg(fn.count(fn.lit(1)), summed).collect()
    return row[0], str(row[1] or 0)


@contextmanager
def _progress(spark: SparkSession, what: str, told: Told) -> Iterator[None]:
    """Report how many tasks of Spark's present stages are done, until the block ends."""
    over = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def tell() -> None:
        while not over.wait(TOLD_EVERY_S):
            stages = [each for each in map(tracker.getStageInfo, tracker.getActiveStageIds()) if each is not None]
            done, total = (
                sum(counts) for counts in ([e.numCompletedTasks for e in stages], [e.numTasks for e in stages])
            )
            told(f"{what}: {done}/{total} tasks" if total else what)

    told(what)
    telling = threading.Thread(target=tell, name="ha-progress", daemon=True)
    telling.start()
    try:
        yield
    finally:
        over.set()
        telling.join(TOLD_EVERY_S)
