"""Iceberg: a batch is staged, its snapshot is decided, and one transaction publishes it and notes its number.

Only the deciding rename says which snapshot counts, so a replaced driver has staged in vain. Iceberg publishes what was
staged under a name once, whoever does it how late, and the number that is noted stays when snapshots expire.
"""

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from py4j.java_gateway import JavaPackage

from ha.outputs.elsewhere import Undecided
from ha.outputs.record import Record
from ha.spark.outputs.table_format import Attempt, asked, check_pair, check_place, having, unknown
from ha.spark.session.private_names import activate, java_failures, java_session
from leader.errors import InvalidSettings
from store.errors import StoreError, Unknown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENABLED, STAGED, BRANCH = "write.wap.enabled", "spark.wap.id", "spark.wap.branch"
"""Property of a table that allows staging; settings of a session that stages, by itself or on a branch."""

WAP, TRY = "wap.id", "ha-try"  # entries of a snapshot's summary

MARKED = f"spark.sql.iceberg.snapshot-property.{TRY}"

MOST_BACK = 100  # newest snapshots that are looked through for ours; each costs some calls of the JVM

PUBLISHED = {"DuplicateWAPCommitException", "CherrypickAncestorCommitException"}

_log = logging.getLogger("ha")


class IcebergTable:
    """One table of Iceberg; it is :class:`ha.outputs.elsewhere.Elsewhere`."""

    kind = "iceberg"

    def __init__(self, spark: "SparkSession", jvm: Any, name: str, app: str) -> None:
        build = jvm.org.apache.iceberg.IcebergBuild
        check_pair(self.kind, spark.version, None if isinstance(build, JavaPackage) else str(build.version()))
        self._jvm, self.place, self._app, self._property = jvm, name, app, app.replace("/", ".")
        self._table = self._loaded(spark)

    def _loaded(self, session: "SparkSession") -> Any:
        """Return the table as a session sees it, refreshed."""
        activate(session)  # Iceberg looks for the catalog there; a thread of the program's own has none
        try:
            found = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java_session(session), self.place)
        except Exception as error:
            raise InvalidSettings(
                f"There is no Iceberg table {self.place}: create it before the query starts, and give its name with "
                f"that of its catalog, not a path. {error}"
            ) from error
        asked(found.refresh, self.place)
        return found

    def check(self) -> None:
        """Refuse a table that takes nothing staged, or whose file system lets two drivers win."""
        self._check(self._table)
        if self._table.operations().getClass().getSimpleName() == "HadoopTableOperations":
            check_place(self.place, urlsplit(self._table.location()).scheme or "file")

    def _check(self, table: Any) -> None:
        if str(table.properties().get(ENABLED)).lower() != "true":
            raise InvalidSettings(
                f"The Iceberg table {self.place} takes no staged batches: "
                f"ALTER TABLE {self.place} SET TBLPROPERTIES ('{ENABLED}'='true')."
            )

    def sweep(self) -> None:
        """Drop what drivers have staged and never decided."""
        ours = [each for each in self._newest(self._table) if str(each.summary().get(WAP)).startswith(f"{self._app}/")]
        for each in ours:
            if not self._is_ancestor(self._table, each.snapshotId()):
                self._drop(each.snapshotId())

    def before(self, session: "SparkSession", attempt: Attempt) -> Record | None:
        """Look whether a batch can be staged; one that was never decided was never published."""
        table = self._loaded(session)  # so that a MERGE reads what was published last
        self._check(table)
        if session.conf.get(BRANCH, None):
            raise InvalidSettings(f"The session has {BRANCH}, so batches of {self.place} cannot be staged: unset it.")
        if (marker := self._marker(table)) >= attempt.number:
            raise unknown(self.place, attempt.number, marker)
        return None

    def write(self, batch: "DataFrame", attempt: Attempt, write: "Callable[[DataFrame, str], object] | None") -> Record:
        """Stage a batch, and return the snapshot to decide."""
        session = batch.sparkSession
        with having(session, {STAGED: f"{self._app}/{attempt.number}", MARKED: attempt.id}):
            if write is not None:
                write(batch, self.place)
            else:
                batch.writeTo(self.place).append()
        table = self._loaded(session)
        ours = [each for each in self._newest(table) if each.summary().get(TRY) == attempt.id]
        if len(ours) != 1 or self._is_ancestor(table, ours[0].snapshotId()):
            for each in ours:
                self._drop(each.snapshotId())
            raise InvalidSettings(
                f"The function of the output has staged {len(ours)} changes of {self.place}: it has to make exactly "
                "one statement on batch.sparkSession, also for a batch without rows, and none that only deletes whole "
                "files (Iceberg commits that at once)."
            )
        rows = ours[0].summary().get("added-records") if write is None else None
        counted = {"": int(rows or 0)} if write is None else {}
        return Record({}, rows=counted, content={"snapshot": int(ours[0].snapshotId())})

    def give(self, batch: int, record: Record, rows: str) -> bool:  # noqa: ARG002
        """Publish the snapshot that was decided, and note the number of its batch, in one transaction."""
        table, snapshot = self._table, record.content["snapshot"]
        asked(table.refresh, self.place)
        if self._marker(table) >= batch:
            return False
        try:
            self._published(table, batch, snapshot)
        except Exception as error:
            failures = java_failures(error)
            asked(table.refresh, self.place)
            if self._marker(table) >= batch:
                return False
            if PUBLISHED & set(failures):  # by hand, or by a driver that was replaced
                asked(lambda: table.updateProperties().set(self._property, f"{batch}").commit(), self.place)
                return False
            if table.snapshot(snapshot) is None or "ValidationException" in failures:
                self._drop(snapshot)
                raise Undecided(
                    f"Batch {batch} is not published in the Iceberg table {self.place}, because others have changed "
                    f"the table since it was staged: the query does it again. {error}"
                ) from error
            if failures:
                raise Unknown(
                    f"Whether batch {batch} is in the Iceberg table {self.place} is not known: {error}"
                ) from error
            raise
        self._drop(snapshot)  # if a copy of it was published
        return True

    def _published(self, table: Any, batch: int, snapshot: int) -> None:
        transaction = table.newTransaction()
        transaction.manageSnapshots().cherrypick(snapshot).commit()
        transaction.updateProperties().set(self._property, f"{batch}").commit()
        transaction.commitTransaction()
        table.refresh()

    def _marker(self, table: Any) -> int:
        """Return the number of the newest batch that the table has; -1 if it has none."""
        found = table.properties().get(self._property)
        return -1 if found is None else int(found)

    def _newest(self, table: Any) -> Iterator[Any]:
        """Yield the newest snapshots, those that are only staged included."""
        found = table.snapshots()
        for index in reversed(range(max(0, (count := found.size()) - MOST_BACK), count)):
            yield found.get(index)

    def _is_ancestor(self, table: Any, snapshot: int) -> bool:
        current = table.currentSnapshot()
        return current is not None and bool(
            self._jvm.org.apache.iceberg.util.SnapshotUtil.isAncestorOf(table, snapshot)
        )

    def _drop(self, snapshot: int) -> None:
        """Drop a snapshot that is only staged; the next leader tries again."""
        table = self._table
        try:
            asked(table.refresh, self.place)
            if table.snapshot(snapshot) is not None and not self._is_ancestor(table, snapshot):
                asked(lambda: table.expireSnapshots().expireSnapshotId(snapshot).commit(), self.place)
        except StoreError as error:
            _log.warning("A staged snapshot %d stays in %s: %s", snapshot, self.place, error)
