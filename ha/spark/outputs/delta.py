"""Delta: a transaction carries the number of its batch, so the table takes each number once, whoever commits.

Delta compares application and version of a transaction with those in its log, and does so again when another commit has
come between. So a late commit of a replaced driver fails. It drops a known number without a word and without running
the plan, whatever the rows are; so the log is read before and after, and each commit says which try it is.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from py4j.java_gateway import JavaPackage

from ha.outputs.record import Record
from ha.spark.outputs.row_writer import evaluate
from ha.spark.outputs.table_format import Attempt, asked, check_pair, check_place, having, unknown
from ha.spark.session.private_names import java_session
from leader.errors import ForeignBatch, InvalidSettings, OutputLost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APP, VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"

ONCE = f"{VERSION}.autoReset.enabled"  # a second statement has no number then, and fails; else it would be dropped

SAID = "spark.databricks.delta.commitInfo.userMetadata"

RETENTION = "delta.setTransactionRetentionDuration"

MOST_BACK = 1000  # commits of others that are looked through for one of ours


class _Commit(msgspec.Struct):
    userMetadata: str = ""  # noqa: N815  # as Delta calls it
    operationMetrics: dict[str, str] = {}  # noqa: N815
    version: int = -1

    @property
    def said(self) -> list[str]:
        """Who, number, plan and try."""
        return self.userMetadata.split(" ")

    def record(self, *, appended: bool) -> Record:
        rows = self.operationMetrics.get("numOutputRows", "") if appended else ""
        return Record({}, rows={"": int(rows)} if rows else {}, content={"version": self.version})


class _Line(msgspec.Struct):
    commitInfo: _Commit  # noqa: N815


class DeltaTable:
    """One table of Delta; it is :class:`ha.outputs.elsewhere.Elsewhere`."""

    kind = "delta"

    def __init__(self, spark: "SparkSession", jvm: Any, name_or_path: str, app: str) -> None:
        build = getattr(jvm.io.delta, "package")  # noqa: B009  # a word of Python
        check_pair(self.kind, spark.version, None if isinstance(build, JavaPackage) else str(build.VERSION()))
        self._jvm, self._app, self._wrote = jvm, app, -1
        self._path = name_or_path if "/" in name_or_path else ""
        self.table = f"delta.`{name_or_path}`" if self._path else name_or_path
        self._log = self._log_of(java_session(spark), name_or_path)
        self.place = str(self._log.dataPath().toString())

    def _log_of(self, session: Any, name_or_path: str) -> Any:
        try:
            identifier = session.sessionState().sqlParser().parseTableIdentifier(self.table)
            found = self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, identifier)
            there = found.tableExists()
        except Exception as error:
            raise InvalidSettings(f"The table {name_or_path} cannot be read as one of Delta: {error}") from error
        if not there:
            raise InvalidSettings(f"There is no Delta table {name_or_path}: create it before the query starts.")
        return found

    def check(self) -> None:
        """Refuse a table that forgets numbers, or whose file system lets two drivers win."""
        check_place(self.place, urlsplit(self.place).scheme or "file")
        self._marker()

    def sweep(self) -> None:
        """Nothing is staged: files of commits that failed are for VACUUM."""

    def before(self, session: "SparkSession", attempt: Attempt) -> Record | None:  # noqa: ARG002
        """Return what a driver has committed that died before it could decide it; None if there is nothing."""
        marker, newest = self._marker()
        if marker < attempt.number:
            return None
        if marker > attempt.number:
            raise unknown(self.place, attempt.number, marker)
        return self._same(attempt, newest).record(appended=True)

    def write(self, batch: "DataFrame", attempt: Attempt, write: "Callable[[DataFrame, str], object] | None") -> Record:
        """Commit a batch; if another driver was faster with it, what that has committed is the batch."""
        said = f"ha {attempt.number} {attempt.plan or '-'} {attempt.id}"
        settings = {APP: self._app, VERSION: f"{attempt.number}", ONCE: "true", SAID: said}
        try:
            with having(batch.sparkSession, settings):
                if write is not None:
                    write(batch, self.table)
                elif self._path:
                    batch.write.format(self.kind).mode("append").save(self._path)
                else:
                    batch.write.format(self.kind).mode("append").saveAsTable(self.table)
        except Exception:
            marker, newest = self._marker()
            if marker != attempt.number or self._same(attempt, newest).said[-1] == attempt.id:
                raise  # else another driver was faster with this batch
        marker, newest = self._marker()
        if marker < attempt.number:
            raise InvalidSettings(
                f"The function of the output has not written to {self.place} under the number of its batch: it has to "
                "make exactly one statement on batch.sparkSession, also for a batch without rows. saveAsTable in "
                "mode overwrite makes the table anew, without that number: overwrite by INSERT OVERWRITE, or by "
                "batch.writeTo(table).overwrite(...)."
            )
        if marker > attempt.number:
            raise unknown(self.place, attempt.number, marker)
        commit = self._same(attempt, newest)
        if commit.said[-1] == attempt.id:
            self._wrote = attempt.number
        else:
            evaluate(batch)  # Delta has not run the plan
        return commit.record(appended=write is None)

    def give(self, batch: int, record: Record, rows: str) -> bool:  # noqa: ARG002
        """Look whether the batch is there: it was committed before it was decided."""
        marker, _ = self._marker()
        if marker < batch:
            raise OutputLost(
                f"The Delta table {self.place} has not the number of batch {batch}, which it had when that was decided "
                f"(its version {record.content.get('version')}): it was replaced by an older copy.", 1, 1,
            )  # fmt: skip
        return batch == self._wrote

    def _marker(self) -> tuple[int, int]:
        """Return the number of the newest batch that the table has (-1: none), and its newest version."""
        none = self._jvm.scala.Option.empty
        snapshot = asked(lambda: self._log.update(False, none(), none()), self.place)
        if snapshot.metadata().configuration().contains(RETENTION):
            raise InvalidSettings(
                f"The Delta table {self.place} has {RETENTION}, so it forgets which batches it has: "
                f"ALTER TABLE ... UNSET TBLPROPERTIES ('{RETENTION}')."
            )
        found = snapshot.transactions().get(self._app)
        return int(found.get()) if found.isDefined() else -1, int(snapshot.version())

    def _same(self, attempt: Attempt, newest: int) -> _Commit:
        """Return the commit with the number of a batch; ``ForeignBatch`` unless it was the same batch as planned."""
        for version in range(newest, max(-1, newest - MOST_BACK), -1):
            commit = self._commit(version)
            if commit.said[:2] == ["ha", f"{attempt.number}"] and len(commit.said) == len(("ha", 0, 1, 2)):
                if commit.said[2] == (attempt.plan or "-"):
                    return commit
                raise unknown(self.place, attempt.number, attempt.number)
        raise ForeignBatch(
            f"The Delta table {self.place} has the number of batch {attempt.number}, and none of its newest "
            f"{MOST_BACK} commits says that it is this batch: leave the option userMetadata to this package."
        )

    def _commit(self, version: int) -> _Commit:
        place = self._jvm.org.apache.hadoop.fs.Path(self._log.logPath(), f"{version:020}.json")
        configuration = self._log.newDeltaHadoopConf()
        line = asked(lambda: self._log.store().read(place, configuration).head(), self.place)
        found = msgspec.json.decode(line, type=_Line).commitInfo
        found.version = version
        return found
