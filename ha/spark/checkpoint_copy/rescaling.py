"""Rescaling: gives the state of a stopped query another number of partitions, on a copy of its checkpoint.

The copy of the newest batch N is repartitioned by Spark, as batch N + 1 without input, and compared. Then it replaces
the checkpoint: see :mod:`ha.spark.checkpoint_copy.replacing`. Until that rename the query's own files are only read.
If the query has begun batch N + 1, that one is done again, with the same input, as batch N + 2.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.inspection import Inspection, inspect
from ha.checkpoints.reading import MOST_BYTES, CheckpointReader
from ha.checkpoints.trees import Tree
from ha.leadership.leadership import Leadership
from ha.rewind.plan import TREE, Plan
from ha.rewind.published import Published
from ha.spark import stored_state
from ha.spark.checkpoint_copy.copying import Progress, Staging
from ha.spark.checkpoint_copy.exporting import fill
from ha.spark.checkpoint_copy.replacing import Replacing
from ha.spark.partition_advice import PARTITIONS
from ha.spark.private_names import check_repartition
from ha.spark.relocate import relocate
from ha.spark.repartition import Compared, Told, check, compare, repartition
from leader.layout.names import SPARK
from store.errors import Conflict, Invalid


class RescaleOutlook(msgspec.Struct, frozen=True):
    """The plan of a rescale.

    Attributes:
        query: its name.
        batch: newest batch that it has committed.
        begun: whether it has begun the next one, and not committed it.
        present: number of state partitions.
        partitions: number of them afterwards.
        files: of the checkpoint that are copied.
        bytes: of these.
        outputs: names of the query's outputs.
        unclear: whether it is not known which outputs are the query's, because the job has several queries.
    """

    query: str
    batch: int
    begun: bool
    present: int
    partitions: int
    files: int
    bytes: int
    outputs: list[str]
    unclear: bool

    @property
    def is_there(self) -> bool:
        """Whether there is nothing to do."""
        return self.present == self.partitions


class Rescaled(NamedTuple):
    """What was decided, and every state that was compared."""

    plan: Plan
    states: list[Compared]


class Rescaling(Replacing):
    """A query of a job; its methods also raise StoreError if a store fails."""

    def look(self, partitions: int, names: Sequence[str] | None = None) -> RescaleOutlook:
        """Return what a rescale would do. The job may run.

        Args:
            partitions: the new number.
            names: of the outputs that are the query's; None if the caller does not say.

        Raises:
            Invalid: the state cannot be repartitioned, or the newest batch cannot be continued; or the job has no such
                output.
            InvalidSettings: the PySpark of this host cannot repartition.
        """
        check_repartition()
        log = self._log(f"{SPARK}/{self._query}")
        if log.committed is None:
            raise Invalid(f"Query {self._query!r} of job {self._job!r} has committed no batch: it has no state yet.")
        begun = log.begun is not None and log.begun > log.committed
        found = self._inspected(log.committed)
        check(found)
        closure = self._closure(log.committed, begun=begun)
        outputs = Published(self._find).of_query(log.committed, names)
        return RescaleOutlook(
            self._query,
            log.committed,
            begun,
            found.partitions,
            partitions,
            len(closure.files) + len(closure.rebuilt),
            closure.bytes,
            sorted(each.output.name for each in outputs),
            names is None and bool(outputs) and len(self._queries()) > 1,
        )

    def rescale(
        self,
        leadership: Leadership,
        partitions: int,
        names: Sequence[str] | None = None,
        *,
        deep: bool = False,
        told: Told = bool,
    ) -> Rescaled:
        """Repartition a copy of the checkpoint, and put it in the checkpoint's place. No query of the job may run.

        Args:
            leadership: of the job, which this was made for.
            partitions: the new number.
            names: of the outputs that are the query's; None for all.
            deep: whether all keys and values are compared, by hashes, and not only counted.
            told: called with the progress, a sentence, from any thread.

        Raises:
            Conflict: Spark has changed the state; or the job's leavings are being cleaned up.
            Fenced: another leader has taken over.
            Invalid: see :meth:`look`.
            PySparkException: Spark cannot repartition it.
        """
        outlook = self.look(partitions, names)
        batch, found = outlook.batch, self._inspected(outlook.batch)
        published = Published(self._find)
        outputs = [published.renumbered(each, batch) for each in published.of_query(batch, names)]
        plan = self._plan(leadership, batch + 1, outputs)

        def copied(now: Progress) -> None:
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
    """Return the file of a batch that was begun, as of the same batch with another number of state partitions.

    Raises:
        Invalid: it has another form.
    """
    try:
        version, head, *sources = offsets.decode().split("\n")
        said = msgspec.json.decode(head, type=dict[str, object])
        conf = said["conf"]
        if not isinstance(conf, dict) or PARTITIONS not in conf:
            raise Invalid(f"The batch that was begun does not say how many partitions it has, in {PARTITIONS}.")
    except (ValueError, KeyError, msgspec.MsgspecError) as error:
        raise Invalid(f"The offsets of the batch that was begun cannot be read ({error}).") from error
    said["conf"] = {**conf, PARTITIONS: f"{partitions}"}
    return "\n".join([version, msgspec.json.encode(said).decode(), *sources]).encode()
