"""Tables of Delta and Iceberg: each batch once, whatever dies, sleeps or comes late; on a Spark that has both.

No suite collects it: ``make qualify STAGES=tables`` runs it with that Spark.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from ha.hosts.java import find_java
from ha.leadership.leadership import Leadership
from ha.outputs.elsewhere import Undecided
from ha.outputs.journal import Journal
from ha.program.output_report import REPORTS
from ha.sandbox.jars import fetched
from ha.spark import Table, checkpoint_location
from ha.spark.outputs import table_format
from leader.errors import Fenced, ForeignBatch, InvalidSettings
from tests.system.spark.conftest import SETTINGS
from tests.system.spark.helpers import leading
from tests.system.spark.table_jars import DELTA, ICEBERG

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]

BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = [each for bundle in (DELTA, ICEBERG) for each in fetched(bundle, find_java().path, print)]
    warehouse = tmp_path_factory.mktemp("warehouse").as_uri()
    both = "io.delta.sql.DeltaSparkSessionExtension,org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    settings = {
        **SETTINGS,
        "spark.driver.memory": "1g",
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": both,
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"{warehouse}/lake",
        "spark.sql.warehouse.dir": warehouse,
    }
    session = SparkSession.builder.master("local[1]").config(map=dict(settings)).getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow local files: Delta's and Iceberg's locks are those of this JVM, and no other process writes."""
    monkeypatch.setattr(table_format, "SHARED", ("hdfs", "file"))


class Lake:
    """A table, and the drivers of its job one after the other."""

    def __init__(self, spark: SparkSession, kind: str, place: Path) -> None:
        self.spark, self.kind, self.jobs = spark, kind, (place / "jobs").as_uri()
        unique = f"t{abs(hash(place)) % 10**9}"
        self.name = unique if kind == "delta" else f"lake.db.{unique}"
        more = "" if kind == "delta" else "TBLPROPERTIES ('write.wap.enabled'='true')"
        spark.sql(f"CREATE TABLE {self.name} (id BIGINT, word STRING) USING {kind} {more}")

    def table(self, leadership: Leadership, write: Any = None, name: str = "output") -> Table:
        return Table(leadership, self.name, self.kind, write, name=name)

    def rows(self, first: int, count: int = 2) -> DataFrame:
        """Return rows of a session of their own, as each query has one."""
        return (
            self.spark.newSession().range(first * 100, first * 100 + count).selectExpr("id", "'a' AS word").coalesce(1)
        )

    def other(self) -> None:
        self.spark.newSession().range(7, 8).selectExpr("id", "'other' AS word").writeTo(self.name).append()

    @property
    def ids(self) -> list[int]:
        self.spark.catalog.refreshTable(self.name)
        return sorted(row.id for row in self.spark.table(self.name).collect())


@pytest.fixture
def lake(spark: SparkSession, kind: str, tmp_path: Path, one_process: None) -> Lake:
    del one_process
    return Lake(spark, kind, tmp_path)


def append(batch: DataFrame, table: str) -> None:
    batch.writeTo(table).append()


def merge(batch: DataFrame, table: str) -> None:
    batch.createOrReplaceTempView("came")
    batch.sparkSession.sql(
        f"MERGE INTO {table} t USING came c ON t.id = c.id "
        "WHEN MATCHED THEN UPDATE SET t.word = concat(t.word, c.word) WHEN NOT MATCHED THEN INSERT *"
    )


@BOTH
def test_each_batch_is_there_once_and_one_that_comes_again_is_dropped_and_compared(lake: Lake) -> None:
    with leading("orders", lake.jobs) as leadership, lake.table(leadership) as table:
        assert table.write(lake.rows(0), 0)
        assert table.write(lake.rows(1), 1)
        assert not table.write(lake.rows(1), 1)
    with leading("orders", lake.jobs) as leadership, lake.table(leadership) as table:
        assert not table.write(lake.rows(1, 3), 1)
        assert table.write(lake.rows(2, 0), 2)
        assert table.write(lake.rows(3), 3)
    assert lake.ids == [0, 1, 100, 101, 300, 301]
    (shown,) = [each for each in REPORTS.all() if each.name == "output"]
    assert (shown.differing > 0, shown.files["created"]) == (True, shown.files["renamed"] + shown.files["ignored"])


@BOTH
def test_a_merge_and_an_overwrite_are_done_once(lake: Lake) -> None:
    def overwrite(batch: DataFrame, table: str) -> None:
        writer = batch.writeTo(table)
        writer.overwrite(lit(True)) if lake.kind == "delta" else writer.overwritePartitions()

    with leading("orders", lake.jobs) as leadership:
        with lake.table(leadership, merge) as table:
            for number in (0, 1, 1, 2):
                table.write(lake.rows(0), number)
        assert [row.word for row in lake.spark.table(lake.name).collect()] == ["aaa", "aaa"]
        with lake.table(leadership, overwrite) as table:
            table.write(lake.rows(5), 3)
    assert lake.ids == [500, 501]


class Zombie(threading.Thread):
    """A driver that falls asleep in its batch, before or after its statement, and wakes when its successor is done."""

    def __init__(self, lake: Lake, leadership: Leadership, asleep: str) -> None:
        super().__init__(daemon=True)
        self.asleep, self.sleeping, self.wake = asleep, threading.Event(), threading.Event()
        self.lake, self.error = lake, Exception("nothing yet")
        self.table = lake.table(leadership, self._write)

    def _write(self, batch: DataFrame, table: str) -> None:
        if self.asleep == "before":
            self._sleep()
        append(batch, table)
        if self.asleep == "after":
            self._sleep()

    def _sleep(self) -> None:
        self.sleeping.set()
        assert self.wake.wait(300)

    def run(self) -> None:
        try:
            self.table.write(self.lake.rows(1), 1)
        except Exception as error:  # noqa: BLE001  # it is what is looked at
            self.error = error
        self.sleeping.set()


@BOTH
@pytest.mark.parametrize("asleep", ["before", "after"])
def test_a_driver_that_commits_after_its_successor_adds_nothing(lake: Lake, asleep: str) -> None:
    with leading("orders", lake.jobs) as leadership:
        with lake.table(leadership) as table:
            table.write(lake.rows(0), 0)
        zombie = Zombie(lake, leadership, asleep)
        zombie.start()
        assert zombie.sleeping.wait(300)
    with leading("orders", lake.jobs) as leadership, lake.table(leadership) as table:
        table.write(lake.rows(1), 1)
        zombie.wake.set()
        zombie.join(300)
        assert isinstance(zombie.error, Fenced), zombie.error
        assert lake.ids == [0, 1, 100, 101]
        assert table.write(lake.rows(2), 2)
    assert lake.ids == [0, 1, 100, 101, 200, 201]


@BOTH
@pytest.mark.parametrize("point", ["staged", "decided", "published"])
def test_a_driver_that_dies_between_two_steps_has_a_successor_that_completes_it(
    lake: Lake, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> Any:
        raise Killed

    with leading("orders", lake.jobs) as leadership, lake.table(leadership) as table, monkeypatch.context() as patch:
        table.write(lake.rows(0), 0)
        kept: Callable[..., bool] = table._format.give
        if point == "staged":
            patch.setattr(Journal, "publish", die)
        elif point == "decided":
            patch.setattr(table._format, "give", die)
        else:
            patch.setattr(table._format, "give", lambda *given: (kept(*given), die()))
        with pytest.raises(Killed):
            table.write(lake.rows(1), 1)
    with leading("orders", lake.jobs) as leadership, lake.table(leadership) as table:
        there = [0, 1] if point == "staged" and lake.kind == "iceberg" else [0, 1, 100, 101]
        assert lake.ids == there, "what was decided is completed before the next batch"
        table.write(lake.rows(1), 1)
        table.write(lake.rows(2), 2)
    assert lake.ids == [0, 1, 100, 101, 200, 201]


@BOTH
def test_commits_of_others_stay_and_stand_in_the_way_of_nothing(lake: Lake) -> None:
    def with_others(batch: DataFrame, table: str) -> None:
        append(batch, table)
        lake.other()

    with leading("orders", lake.jobs) as leadership, lake.table(leadership, with_others) as table:
        for number in range(3):
            table.write(lake.rows(number + 1), number)
    assert lake.ids == [7, 7, 7, 100, 101, 200, 201, 300, 301]
    if lake.kind == "iceberg":
        found, published = (
            {row.snapshot_id for row in lake.spark.table(f"{lake.name}.{each}").collect()}
            for each in ("snapshots", "history")
        )
        assert found <= published, "no staged snapshot is left"


@pytest.mark.parametrize("kind", ["iceberg"])
def test_a_merge_that_others_have_overtaken_is_undone_and_done_again(lake: Lake) -> None:
    others = iter([False, True])

    def overtaken(batch: DataFrame, table: str) -> None:
        merge(batch, table)
        if next(others, False):
            lake.other()

    with leading("orders", lake.jobs) as leadership, lake.table(leadership, overtaken) as table:
        assert table.write(lake.rows(0), 0)
        with pytest.raises(Undecided, match="others have changed"):
            table.write(lake.rows(0), 1)
        assert table.write(lake.rows(0), 1)
        assert table.write(lake.rows(0), 2)
    assert lake.ids == [0, 1, 7]
    assert sorted(row.word for row in lake.spark.table(lake.name).collect()) == ["aaa", "aaa", "other"]


@BOTH
@pytest.mark.parametrize("statements", [0, 2])
def test_a_function_makes_exactly_one_statement_on_the_session_of_the_batch(lake: Lake, statements: int) -> None:
    def wrong(batch: DataFrame, table: str) -> None:
        for _ in range(statements):
            append(batch, table)

    said = pytest.raises(Exception, match=r"exactly one statement|idempotent|txnVersion")
    with leading("orders", lake.jobs) as leadership, lake.table(leadership, wrong) as table, said:
        table.write(lake.rows(0), 0)


@pytest.mark.parametrize("kind", ["delta"])
def test_a_function_that_replaces_the_table_is_told_what_numbers_its_batches(lake: Lake) -> None:
    def replace(batch: DataFrame, table: str) -> None:
        batch.write.format("delta").mode("overwrite").saveAsTable(table)

    told = pytest.raises(InvalidSettings, match="saveAsTable in mode overwrite makes the table anew")
    with leading("orders", lake.jobs) as leadership, lake.table(leadership, replace) as table, told:
        table.write(lake.rows(0), 0)


@BOTH
def test_what_is_not_safe_is_refused_at_the_start(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with leading("orders", lake.jobs) as leadership:
        with pytest.raises(InvalidSettings, match=r"There is no|cannot be read"):
            Table(leadership, f"{lake.name}_not", lake.kind)
        with pytest.raises(InvalidSettings, match="has no format 'hudi'"):
            Table(leadership, lake.name, "hudi")
        unsafe = (
            ("SET TBLPROPERTIES ('delta.setTransactionRetentionDuration'='interval 7 days')", "forgets which batches")
            if lake.kind == "delta"
            else ("UNSET TBLPROPERTIES ('write.wap.enabled')", "takes no staged batches")
        )
        monkeypatch.setattr(table_format, "SHARED", ("hdfs",))
        with pytest.raises(InvalidSettings, match="two drivers could both win"):
            lake.table(leadership)
        monkeypatch.setattr(table_format, "SHARED", ("file",))
        lake.spark.sql(f"ALTER TABLE {lake.name} {unsafe[0]}")
        with pytest.raises(InvalidSettings, match=unsafe[1]):
            lake.table(leadership)


@BOTH
def test_a_journal_that_was_lost_does_not_drop_batches_without_a_word(lake: Lake, tmp_path: Path) -> None:
    with leading("orders", lake.jobs) as leadership, lake.table(leadership) as table:
        for number in range(3):
            table.write(lake.rows(number), number)
    with (
        leading("orders", (tmp_path / "others").as_uri()) as leadership,
        lake.table(leadership) as table,
        pytest.raises(ForeignBatch, match="has batches up to 2 of this output"),
    ):
        table.write(lake.rows(0), 0)
    assert lake.ids == [0, 1, 100, 101, 200, 201]


def test_a_query_publishes_to_two_tables_and_one_that_begins_again_is_refused(
    spark: SparkSession, tmp_path: Path, one_process: None
) -> None:
    del one_process
    lakes = [Lake(spark, "delta", tmp_path / "a"), Lake(spark, "iceberg", tmp_path / "b")]
    (tmp_path / "in").mkdir()
    jobs, fails = lakes[0].jobs, iter([False, True])

    def run(query: str) -> str:
        with leading("orders", jobs) as leadership:
            first, second = lakes[0].table(leadership, name="first"), lakes[1].table(leadership, name="second")

            def both(batch: DataFrame, number: int) -> None:
                first.write(batch, number)
                if next(fails, False):
                    raise ValueError("dead between the tables")
                second.write(batch, number)

            lines = spark.readStream.schema("id BIGINT, word STRING").option("maxFilesPerTrigger", 1)
            frame = lines.json((tmp_path / "in").as_uri()).groupBy("id").agg({"word": "max"}).toDF("id", "word")
            writer: Any = frame.writeStream.outputMode("update").trigger(availableNow=True).queryName(query)
            writer = writer.option("checkpointLocation", checkpoint_location(leadership, query)).foreachBatch(both)
            started = writer.start()
            try:
                started.awaitTermination()
            except Exception as error:  # noqa: BLE001
                return f"{error}"
            return ""

    for number in range(4):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"id": {number}, "word": "a"}}\n')
        said = run("words")
        assert ("dead between" in said) == (number == 1)
        if number == 1:
            assert (lakes[0].ids, lakes[1].ids) == ([0, 1], [0])
    assert (lakes[0].ids, lakes[1].ids) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert "does not take batch 0 of query 'others'" in run("others")
