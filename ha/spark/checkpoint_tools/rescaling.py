"""Rescaling: gives the state of a stopped query another number of partitions, on a copy of its checkpoint.

The copy of the newest batch N is repartitioned by Spark, as batch N + 1 without input, and compared. Then it replaces
the checkpoint: see :mod:`ha.spark.checkpoint_tools.replacing`. Until that rename the query's own files are only read.
If the query has begun batch N + 1, that one is done again, with the same input, as batch N + 2.

Spark's own call works in place, and what it refuses or what a crash interrupts leaves a checkpoint with which no query
starts: so it gets a copy. An operator whose state is in a single partition, whatever the setting says, would lose it
without a word.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import NamedTuple

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_reader import MOST_BYTES, CheckpointReader
from ha.checkpoints.inspection import Inspection, inspect
from ha.checkpoints.state_versions import SINGLE_PARTITION
from ha.checkpoints.trees import Tree
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_tools.copying import CopyProgress, Staging
from ha.spark.checkpoint_tools.exporting import fill
from ha.spark.checkpoint_tools.replacing import Replacing, completed, replaced
from ha.spark.rewind.completing import TREE, RewindPlan
from ha.spark.rewind.published import PublishedBatches
from ha.spark.session.private_names import check_repartition, checkpoint_manager
from ha.spark.session.spark_session import configured
from ha.spark.session.spark_settings import PARTITIONS
from ha.spark.stored import stored_state
from ha.spark.stored.locations import relocate
from leader.errors import LeaderError
from leader.layout.names import SPARK
from store.errors import Conflict, Invalid

Told = Callable[[str], object]

TOLD_EVERY_S = 1.0

HASH_ANYTHING = {"spark.sql.legacy.allowHashOnMapType": "true"}
"""Spark forbids it, because equal maps may be written in another order; here the bytes themselves are the same."""

_TIMERS = ("$procTimers", "$eventTimers")


class RescaleOutlook(msgspec.Struct, frozen=True):
    """The plan of a rescale."""

    query: str  # its name
    batch: int  # newest batch that it has committed
    begun: bool  # whether it has begun the next one, and not committed it
    present: int  # number of state partitions
    partitions: int  # number of them afterwards
    files: int  # of the checkpoint that are copied
    bytes: int  # of these
    outputs: list[str]  # names of the query's outputs

    @property
    def is_there(self) -> bool:
        """Whether there is nothing to do."""
        return self.present == self.partitions


class ComparedStates(msgspec.Struct, frozen=True):
    """One state before and after."""

    operator: int  # number of the operator
    state: str  # the store of a join, the variable of transformWithState, `timers`, or `default`
    keys: int  # number of its pairs of keys and values, which is the same in both
    hash: str | None  # sum of the hashes of all pairs, the same in both; null if they were only counted


class Rescaled(NamedTuple):
    """What was decided, and every state that was compared."""

    plan: RewindPlan
    states: list[ComparedStates]


def give_partitions(
    opened: Stores,
    job: str,
    query: str,
    partitions: int,
    *,
    deep: bool,
    dry_run: bool,
    timeout: float,
    agree: Callable[..., bool],
    working: Callable[[], AbstractContextManager[Told]],
) -> tuple[RescaleOutlook, Rescaled | None]:
    """Rescale a query, as :func:`ha.spark.checkpoint_tools.replacing.replaced` does it."""
    # `working` is entered while Spark works, and receives what it does.

    def change(rescaling: Rescaling, leadership: Leadership) -> Rescaled:
        try:
            with working() as told:
                return rescaling.rescale(leadership, partitions, deep=deep, told=told)
        except PySparkException as error:
            raise LeaderError(
                f"Spark cannot repartition the state of {query}, and nothing was changed: {stored_state.meaning(error)}"
            ) from error

    find = partial(Rescaling, opened.files, job, query)
    completed(find(), opened, timeout, dry_run=dry_run)
    return replaced(
        find, opened, timeout, "rescaled", agree=agree, look=lambda each: each.look(partitions), change=change
    )


class Rescaling(Replacing):
    """A query of a job; its methods also raise StoreError if a store fails."""

    def look(self, partitions: int) -> RescaleOutlook:
        """Return what a rescale would do; the job may run. Raises ``Invalid`` if the state cannot be repartitioned."""
        check_repartition()
        log = self._log(f"{SPARK}/{self._query}")
        if log.committed is None:
            raise self._without_batch("it has no state yet")
        begun = log.begun is not None and log.begun > log.committed
        found = self._inspected(log.committed)
        check(found)
        closure = self._closure(log.committed, begun=begun)
        outputs = PublishedBatches(self._find, self._query).after(log.committed)
        return RescaleOutlook(
            self._query, log.committed, begun, found.partitions, partitions, len(closure.files) + len(closure.rebuilt),
            closure.bytes, sorted(each.output.name for each in outputs),
        )  # fmt: skip

    def rescale(self, leadership: Leadership, partitions: int, *, deep: bool = False, told: Told = bool) -> Rescaled:
        """Repartition a copy of the checkpoint, and put it in the checkpoint's place. No query of the job may run."""
        # With `deep` all keys and values are compared, by hashes, and not only counted. Raises `Conflict` if Spark has
        # changed the state, and PySpark's own error if it cannot repartition it.
        outlook = self.look(partitions)
        batch, found = outlook.batch, self._inspected(outlook.batch)
        published = PublishedBatches(self._find, self._query)
        outputs = [published.renumbered(each, batch) for each in published.after(batch)]
        plan = self._plan(leadership, batch + 1, outputs)

        def copied(now: CopyProgress) -> None:
            told(f"copying: {now.files_done}/{now.files} files, {now.bytes_done:,} of {now.bytes:,} bytes")

        with self._prepared(leadership, f"partitions-{partitions}-{plan.trash}") as place:
            staging = Staging(self._files, self._directory.at(place), copied)
            fill(staging, self._source(batch, begun=outlook.begun))
            if outlook.begun:
                following = staging.tree.head(f"offsets/{batch + 1}", MOST_BYTES)
                staging.remove([f"offsets/{batch + 1}", f"offsets/.{batch + 1}.crc"])
            uri = leadership.path(f"{place}/{TREE}")
            relocate(self._directory, f"{place}/{TREE}", uri)
            told("starting Spark")
            with stored_state.session(found) as spark:
                repartition(spark, uri, partitions, told)
                states = compare(spark, uri, found, batch + 1, deep=deep, told=told)
            self._check_copy(staging.tree, batch, partitions)
            if outlook.begun:
                staging.write(f"offsets/{batch + 2}", repartitioned(following, partitions))
            self._decide(leadership, place, plan)
        return Rescaled(plan, states)

    def _inspected(self, batch: int) -> Inspection:
        return inspect(CheckpointReader(Tree(self._files, self._directory.at(f"{SPARK}/{self._query}"))), batch)

    @staticmethod
    def _check_copy(tree: Tree, batch: int, partitions: int) -> None:
        """Compare what Spark has written with what it should have, by names and small files."""
        reader = CheckpointReader(tree)
        (closure,) = reader.closures(reader.files(), [batch + 1])
        if closure.missing:
            raise Conflict(
                f"Spark's repartition is not whole. {closure.missing}: {closure.reason} Nothing was changed in the job."
            )
        paths = [f"offsets/{each}" for each in (batch, batch + 1)]
        said = reader.contents(set(paths))
        old, new = (contents.offsets(said[path] or b"") for path in paths)
        if (new.partitions, new.sources, new.watermark_ms) != (partitions, old.sources, old.watermark_ms):
            raise Conflict("Spark's repartition has changed more than partitions. Nothing was changed in the job.")


def repartitioned(offsets: bytes, partitions: int) -> bytes:
    """Return the file of a batch that was begun, as of the same batch with another number of state partitions."""
    try:
        if PARTITIONS not in contents.offsets(offsets).settings:
            raise Invalid(f"The batch that was begun does not say how many partitions it has, in {PARTITIONS}.")
        return contents.rewritten(offsets, {PARTITIONS: f"{partitions}"})
    except contents.Unreadable as error:
        raise Invalid(f"The offsets of the batch that was begun cannot be read ({error}).") from error


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
        for name in stored_state.states_of(operator):
            yield operator.id, name, stored_state.choose(found, operator.id, name)
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
    with suppress(RuntimeError):  # without a free thread nothing is reported
        telling.start()
    try:
        yield
    finally:
        over.set()
        if telling.ident:
            telling.join(TOLD_EVERY_S)
