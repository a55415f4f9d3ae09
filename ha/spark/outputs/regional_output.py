"""RegionalOutput: one output fed by many queries; a failed or slow one does not block the rest.

Each region is a query with a checkpoint and a journal of its own. All write to one directory and publish one sequence:
:mod:`ha.outputs.regional` numbers the batches and knows the newest one for which all regions are complete. See
decision 58.
"""

import logging
import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from ha.hook import misses
from ha.leadership.fenced_rename import FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.outputs.batch import Batch
from ha.outputs.columns import types_of
from ha.outputs.journal import Journal
from ha.outputs.regional import RegionalHome, RegionMarks, RegionRecord
from ha.program.output_report import REPORTS, WRITE
from ha.spark.outputs.batch_origin import Origins
from ha.spark.outputs.publisher import report
from ha.spark.outputs.region_looks import RegionLooks
from ha.spark.outputs.row_writer import RowWriter, evaluate
from ha.spark.queries.query_failures import failure
from ha.spark.rewind.completing import settle
from leader.errors import Fenced, InvalidSettings, LeaderError, NotLeader
from leader.layout.names import check_word
from store.clock import now
from store.errors import StoreError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 8  # journals that are opened side by side
PERIOD_S = 1.0  # from one round of looks at the queries to the next
SHARE = 10  # a round that takes long is followed by a pause that is so many times as long

_TASK = re.compile(r"Task (\d+) in stage (\d+\.\d+)")

_log = logging.getLogger("ha")


class RegionalOutput:
    """A directory to which several queries publish their batches: give ``output[REGION]`` to ``foreachBatch`` of each.

    Make one for all regions of a leadership; it is safe to use from the threads of its queries.
    """

    def __init__(
        self,
        spark: "SparkSession",
        leadership: Leadership,
        uri: str,
        regions: Iterable[str],
        name: str = "output",
        *,
        source: str = "json",
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        max_region_lag: int = 100,
    ) -> None:
        """Create the directories, complete the batches that an earlier driver decided, and drop those it did not.

        Args:
            spark: the session that starts the queries.
            leadership: of the job.
            uri: directory in which batches appear as ``region=<region>/batch=<id>``. It must be in the job's file
                system, and belong to these queries.
            regions: names, each that of the region's query. All that the output ever had must be among them.
            name: of the output, in the leader directory and in messages; unlike those of its regions.
            source: Spark's name of the file format: parquet, json, text, ...
            partition_by: columns. Batches then appear below ``region=<region>/<column>=<value>/...``.
            options: for Spark's writer.
            max_region_lag: batches that a region may come further than the mark. The queries of those that would be
                further fail then, until the region that holds the mark back has gone on.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: the output or a region cannot have that name.
            InvalidSettings: no rename leads to the output, it had other regions, or its partitions would be hidden.
            StoreError: the store did not answer.
        """
        names = [check_word(each, "a region") for each in regions]
        self._name = check_word(name, "an output")
        if not names or len({*names, name}) <= len(names):
            raise InvalidSettings(f"Output {name!r} needs regions with names of their own, and has {names}.")
        if max_region_lag < 1:
            raise InvalidSettings(f"The max_region_lag of output {name!r} is {max_region_lag}: it must be at least 1.")
        layout.check_columns(partition_by, layout.BATCH, layout.REGION)
        self._settling = leadership.settling
        settle(leadership)  # an earlier leader may have begun to put a query back
        report(leadership)
        self._over = threading.Event()
        self._renames = FencedRename(leadership, uri)
        self._rows, self._partition_by = RowWriter(self._renames, source, partition_by, options), partition_by
        self._place = f"{leadership.directory} {uri} {name}"  # that no other output has
        self._origins = Origins(self._renames, name, self._place)
        try:
            self._home = RegionalHome(self._renames, name)
            self._home.load(names)
            files, renames = (source, tuple(partition_by)), self._renames
            self._journals = {each: Journal(leadership, uri, each, renames=renames, files=files) for each in names}
            with ThreadPoolExecutor(THREADS, thread_name_prefix="ha-region") as threads:
                broken = dict(filter(None, threads.map(self._settle, names)))
            newest = {each: journal.newest for each, journal in self._journals.items()}
            self._marks = RegionMarks(newest, self._home.mark, max_region_lag)
            for region, error in broken.items():
                self._marks.fail(region, *_told(error))
        except BaseException:
            self.close()
            raise
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._told: list[RegionRecord] = []
        self._looks = RegionLooks(spark)
        self._looking = False
        self._thread = threading.Thread(target=self._look_on, name="ha-regions", daemon=True)
        self._leadership = leadership
        self._tell()

    def __getitem__(self, region: str) -> "Callable[[DataFrame, int], None]":
        """Return what writes the batches of a region, for ``foreachBatch``.

        Raises:
            KeyError: there is no such region.
        """
        self._journals[region]
        return lambda batch, number: self._called(region, batch, number)

    @property
    def complete_up_to(self) -> int:
        """The mark: all rows of batches up to this one have come, from all regions; -1 if nothing is complete."""
        return self._home.mark

    @property
    def behind(self) -> list[RegionRecord]:
        """The regions that have failed or are late."""
        with self._lock:
            return self._marks.behind()

    def write(self, region: str, batch: "DataFrame", batch_id: int) -> bool:
        """Write a batch of a region and publish it.

        Args:
            region: its name.
            batch: its rows. They are evaluated exactly once, even if it was published before.
            batch_id: number that Spark gave to the batch. Readers see one that is as high, or higher.

        Returns:
            Whether the batch was published now, and not before.

        Raises:
            AlreadyExists: this job did not put the batch there.
            Fenced: another leader has taken over. Whatever was published, that leader publishes as well.
            ForeignBatch: the region has batches of another query, or of a later state of this one.
            InvalidSettings: it is no batch of the region's query, or that has written it already.
            NotLeader: the job is being stopped with a savepoint.
            OutputLost: files of the batch are gone.
            RegionBehind: a region has not come as far as ``max_region_lag`` allows.
            StoreError: it is not known whether the batch was published; Spark will do it again.
        """
        with misses.noting(region, f"{self._place} {region}", batch, batch_id):
            return self._once(region, batch, batch_id)

    def _once(self, region: str, batch: "DataFrame", batch_id: int) -> bool:
        if self._settling.is_set():
            raise NotLeader(f"Batch {batch_id} of region {region!r} is not begun: the job is being stopped.")
        journal, origin = self._journals[region], self._origins.of(batch, batch_id)
        if origin.line.name not in ("", region):
            raise InvalidSettings(
                f"Region {region!r} of output {self._name!r} has got a batch of query {origin.line.name!r}: give the "
                "query the name of its region."
            )
        if origin.part:
            raise InvalidSettings(f"Region {region!r} of output {self._name!r} writes batch {batch_id} a second time.")
        with self._lock:
            least = self._marks.begin(region, batch_id, journal.id_of(batch_id))
        try:
            if published := journal.admit(origin):
                published = self._write(region, batch, origin, least)
            else:
                evaluate(batch)
                journal.repeat(origin)
            self._origins.written(origin)
        except BaseException as error:
            with self._lock:
                self._marks.fail(region, *_told(error))
            self._tell()
            raise
        with self._lock:
            self._marks.complete(region, journal.newest)
        self._tell()
        return published

    def _write(self, region: str, batch: "DataFrame", origin: Batch, least: int) -> bool:
        journal, attempt = self._journals[region], uuid.uuid4().hex
        if journal.asks_for_types:
            journal.expect(types_of(batch.schema.jsonValue(), self._partition_by))
        with REPORTS.timed(region, WRITE):
            wrote = self._rows.write(batch, journal.rows(attempt), f"{layout.REGION}{region}")
        return journal.publish(attempt, origin, wrote, least)

    def close(self) -> None:
        """Let go of the file system."""
        self._over.set()
        self._renames.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _called(self, region: str, batch: "DataFrame", number: int) -> None:
        with self._lock:
            if not self._looking:
                self._looking = True
                self._leadership.on_revoked(self._over.set)
                self._thread.start()
        self.write(region, batch, number)

    def _settle(self, region: str) -> tuple[str, Exception] | None:
        try:
            self._journals[region].settle()
        except (Fenced, StoreError):
            raise
        except LeaderError as error:  # its next batch raises it again; the other regions go on
            _log.error("Region %s of output %s: %s", region, self._name, error)
            return region, error
        return None

    def _look_on(self) -> None:
        """Ask queries without a batch whether there is nothing to do, until closed; on a thread of its own."""
        pause = PERIOD_S
        while not self._over.wait(pause):
            began = now()
            with self._lock:
                asked, front = self._marks.unknown(), self._marks.front
            for region, idle, error in self._looks.look(asked):
                with self._lock:
                    if error:
                        self._marks.fail(region, *_of_text(error))
                    elif idle:
                        self._marks.idle(region, asked[region], front)
            try:
                self._tell()
            except Fenced:
                return
            pause = max(PERIOD_S, SHARE * (now() - began))

    def _tell(self) -> None:
        """Publish the mark and what holds it back, if that has changed. One thread does it for all."""
        while self._untold() and self._telling.acquire(blocking=False):
            try:
                with self._lock:
                    mark, behind = self._marks.mark, self._marks.behind()
                if mark > self._home.mark:
                    self._home.move(mark)
                if behind != self._told:
                    self._say(behind)
                    self._told = behind
                    self._home.tell(behind)
                REPORTS.show()
            except StoreError as error:  # the next batch of any region tells it
                _log.warning("Output %s: the mark is published later: %s", self._name, error)
                return
            finally:
                self._telling.release()

    def _untold(self) -> bool:
        """Whether something is to be told; takes note of it for the metrics, too."""
        with self._lock:
            mark, behind, apart = self._marks.mark, self._marks.behind(), self._marks.apart
        states = dict(Counter(str(each.state) for each in behind))
        REPORTS.set(self._name, complete_up_to=mark, apart=apart, behind=states)
        return mark > self._home.mark or behind != self._told

    def _say(self, behind: list[RegionRecord]) -> None:
        before = {each.scope: each.state for each in self._told}
        for each in behind:
            if before.pop(each.scope, None) != each.state:
                _log.warning(
                    "Region %s of output %s is behind (%s) and lacks batch %d: %s",
                    each.scope, self._name, each.state, each.checkpoint_id, each.message,
                )  # fmt: skip
        for scope in before:
            _log.info("Region %s of output %s has come as far as the others.", scope, self._name)


def _told(error: BaseException) -> tuple[str, tuple[str, ...]]:
    return _of_text(f"{type(error).__name__}: {error}" if isinstance(error, LeaderError | StoreError) else f"{error}")


def _of_text(text: str) -> tuple[str, tuple[str, ...]]:
    tasks = sorted({f"{stage}/{task}" for task, stage in _TASK.findall(text)})
    return failure("", text).error, tuple(tasks)
