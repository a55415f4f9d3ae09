"""Partition commit: a marker says that a partition is finished, and no row of it comes while the marker stands."""

import json
import logging
import shutil
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from ha.cli.output_verify import _repaired
from ha.leadership.fenced_rename import FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs.folder import OutputFolder
from ha.outputs.partition_commit import PARTITION_TIME, PROCESS_TIME, CommittedPartition, PartitionCommit
from ha.outputs.partitions import MOST_BYTES, PartitionNote, Partitions
from ha.outputs.reading import JournalOutput
from ha.outputs.setting_aside import SettingAside
from ha.program.output_report import OutputReports
from ha.spark import Output
from ha.spark.stored.locations import checkpoint_location
from leader.errors import Fenced, InvalidName, InvalidSettings
from store.errors import ConnectionLost
from store.local import LocalFiles
from tests.system.spark.batches import Batch, Query, Session, found, left, own_folder
from tests.system.spark.helpers import count_calls, fence, leading
from tests.system.spark.marker_reader import MARKER
from tests.system.spark.plain_reader import QUERY_ID, STEP_S, offsets

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> OutputReports:
    made = OutputReports()
    for module in ("spark.outputs.output", "spark.outputs.publisher", "outputs.journal", "outputs.committing"):
        monkeypatch.setattr(f"ha.{module}.REPORTS", made)
    return made


def begins(values: Any) -> datetime:
    return datetime.fromtimestamp(int(values["day"]) * STEP_S, UTC)


BY_WATERMARK = PartitionCommit(trigger=PARTITION_TIME, delay=STEP_S, time=begins)


def output(leadership: Leadership, tmp_path: Path, commit: PartitionCommit = BY_WATERMARK) -> Output:
    return Output(leadership, (tmp_path / "out").as_uri(), partition_by=["day"], commit=commit)


RUNNING: dict[str, Query] = {}  # the query of each leadership


class DayBatch(Batch):
    """A batch of a query that Spark knows, with rows of some days; Spark has written down when it was."""

    def __init__(self, leadership: Leadership, number: int, *days: int) -> None:
        running = RUNNING.setdefault(leadership.directory, Query(QUERY_ID, "orders", leadership.path("spark/orders")))
        running.batch = number
        super().__init__({f"day={day}": "rows" for day in days}, Session(running))
        log = Path(leadership.directory.removeprefix("file://"), "spark", "orders", "offsets")
        log.mkdir(parents=True, exist_ok=True)
        (log.parent / "metadata").write_text(f'{{"id":"{QUERY_ID}"}}')
        (log / str(number)).write_bytes(offsets(number))


def ended(leadership: Leadership) -> None:
    """The query has ended, by an error or with its driver."""
    RUNNING.pop(leadership.directory).active = False


def write(made: Output, leadership: Leadership, number: int, *days: int) -> bool:
    return made.write(cast("DataFrame", DayBatch(leadership, number, *days)), number)


def marked(tmp_path: Path, name: str = MARKER) -> list[int]:
    assert all(each.read_bytes() == b"" for each in (tmp_path / "out").rglob(name))
    return sorted(int(each.parent.name.removeprefix("day=")) for each in (tmp_path / "out").rglob(name))


def notes(leadership: Leadership, state: str) -> list[str]:
    return sorted(each.name for each in (own_folder(leadership) / "partitions" / state).iterdir())


def test_by_the_watermark_of_the_batch(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        write(made, leadership, 0, 0, 1)
        assert marked(tmp_path) == []
        write(made, leadership, 1, 1, 2)
        assert marked(tmp_path) == [0]
    with output(leadership, tmp_path) as made:  # pending ones are loaded
        write(made, leadership, 2, 5)
        assert marked(tmp_path) == [0, 1]
        assert notes(leadership, "pending") == ["1~1000001000000~day=2", "2~1000002000000~day=5"]
        assert made.commit_pending() == 2
        assert made.commit_pending() == 0
    assert marked(tmp_path) == [0, 1, 2, 5]
    assert left(leadership) == []


def test_by_the_time_of_batches_over_a_restart(leadership: Leadership, tmp_path: Path) -> None:
    commit = PartitionCommit(delay=2 * STEP_S, success_file="_DONE")
    with output(leadership, tmp_path, commit) as made:
        write(made, leadership, 3, 1)
        write(made, leadership, 4, 1, 2)
    with output(leadership, tmp_path, commit) as made:
        assert marked(tmp_path, "_DONE") == []
        write(made, leadership, 5, 3)
    assert marked(tmp_path, "_DONE") == [1]


@pytest.mark.parametrize("triggers", [(PARTITION_TIME, PROCESS_TIME), (PROCESS_TIME, PARTITION_TIME)])
def test_another_trigger_after_a_restart(leadership: Leadership, tmp_path: Path, triggers: tuple[str, str]) -> None:
    first, second = (PartitionCommit(trigger=each, delay=3 * STEP_S, time=begins) for each in triggers)
    with output(leadership, tmp_path, first) as made:
        write(made, leadership, 1, 1)
    with output(leadership, tmp_path, second) as made:
        write(made, leadership, 4, 9)
    assert marked(tmp_path) == [1]


def test_late_rows_take_the_marker_away_and_are_counted(
    leadership: Leadership, tmp_path: Path, reports: OutputReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    rename = LocalFiles.rename

    def look(files: LocalFiles, source: str, destination: str) -> None:
        if destination.endswith("day=0/batch=2"):
            seen.append(marked(tmp_path))
        rename(files, source, destination)

    monkeypatch.setattr(LocalFiles, "rename", look)
    with output(leadership, tmp_path) as made:
        write(made, leadership, 1, 0)
        assert marked(tmp_path) == [0]
        write(made, leadership, 2, 0, 5)
        assert seen == [[]]
        assert marked(tmp_path) == [0], "and it is committed again"
    (report,) = reports.all()
    assert (report.pending, report.committed, report.late, report.late_files) == (1, 2, 1, 1)
    assert len(notes(leadership, "committed")) == 1


def test_a_policy_that_fails_is_called_again_at_the_query_s_next_try(leadership: Leadership, tmp_path: Path) -> None:
    told: list[CommittedPartition] = []

    def tell(partition: CommittedPartition) -> None:
        told.append(partition)
        if len(told) == 1:
            raise RuntimeError("The receiver is away.")

    commit = PartitionCommit(trigger=PARTITION_TIME, delay=STEP_S, time=begins, policy=[tell, "success-file"])
    with output(leadership, tmp_path, commit) as made:
        with pytest.raises(RuntimeError, match="away"):
            write(made, leadership, 1, 0)
        assert marked(tmp_path) == [], "policies are run in their order"
        assert not write(made, leadership, 1, 0)
        assert marked(tmp_path) == [0]
    assert told[1] == CommittedPartition("day=0", f"{(tmp_path / 'out').as_uri()}/day=0", {"day": "0"}, [1])
    assert told[0] == told[1]


def test_rows_that_come_after_a_commit_that_failed_half_way(leadership: Leadership, tmp_path: Path) -> None:
    """The marker is out, and the note says that policies were begun."""

    def fail(_: CommittedPartition) -> None:
        raise RuntimeError("The receiver is away.")

    commit = PartitionCommit(trigger=PARTITION_TIME, delay=STEP_S, time=begins, policy=["success-file", fail])
    with output(leadership, tmp_path, commit) as made, pytest.raises(RuntimeError):
        write(made, leadership, 1, 0)
    assert marked(tmp_path) == [0]
    later = PartitionCommit(trigger=PARTITION_TIME, delay=9 * STEP_S, time=begins)
    with output(leadership, tmp_path, later) as made:
        write(made, leadership, 2, 0)
    assert marked(tmp_path) == []
    assert notes(leadership, "committing") == []
    assert notes(leadership, "pending") == ["2~1000001000000~day=0"], "the time is that of its first rows"


def test_a_driver_that_was_replaced_tells_nobody(leadership: Leadership, tmp_path: Path) -> None:
    told: list[CommittedPartition] = []
    commit = PartitionCommit(policy=[told.append, "success-file"], delay=10 * STEP_S)
    with output(leadership, tmp_path, commit) as made:
        write(made, leadership, 1, 0)
        fence(leadership)
        with pytest.raises(Fenced):
            made.commit_pending()
    assert (told, marked(tmp_path)) == ([], [])


def test_a_driver_that_is_replaced_while_a_policy_runs_makes_no_marker(leadership: Leadership, tmp_path: Path) -> None:
    told: list[CommittedPartition] = []
    commit = PartitionCommit(policy=[lambda _: fence(leadership), told.append, "success-file"])
    with output(leadership, tmp_path, commit) as made, pytest.raises(Fenced):
        write(made, leadership, 1, 0)
    assert (told, marked(tmp_path)) == ([], [])


def test_a_partition_without_a_time_waits_from_the_next_batch_on(leadership: Leadership, tmp_path: Path) -> None:
    commit = PartitionCommit(delay=2 * STEP_S)
    with output(leadership, tmp_path, commit) as made:
        write(made, leadership, 1, 5)
    pending = own_folder(leadership) / "partitions" / "pending"
    (pending / "1~1000001000000~day=5").rename(pending / "1~0~day=5")
    with output(leadership, tmp_path, commit) as made:
        for number, expected in ((2, []), (3, []), (4, [5])):
            write(made, leadership, number, 9)
            assert marked(tmp_path) == expected + ([9] if number == 4 else [])


def test_a_partition_without_rows_is_not_committed(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        write(made, leadership, 0, 0, 1)
        shutil.rmtree(tmp_path / "out" / "day=0" / "batch=0")
        write(made, leadership, 2, 9)
    assert marked(tmp_path) == [1]
    assert notes(leadership, "pending") == ["2~1000002000000~day=9"]


def test_a_partition_whose_values_are_no_time_is_told_once(
    leadership: Leadership, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit = PartitionCommit(trigger=PARTITION_TIME)
    with output(leadership, tmp_path, commit) as made, caplog.at_level(logging.WARNING, "ha"):
        write(made, leadership, 1, 7)
        write(made, leadership, 2, 7)
        assert [each.getMessage().partition(" of output")[0] for each in caplog.records] == ["Partition day=7"]
        assert made.commit_pending() == 1


def test_a_session_in_another_zone_is_refused_before_its_first_row(leadership: Leadership, tmp_path: Path) -> None:
    batch = Batch({"day=2026-06-01": "row"}, Session(zone="America/New_York"))
    made = output(leadership, tmp_path, PartitionCommit(trigger=PARTITION_TIME))
    with made, pytest.raises(InvalidSettings, match="the session is in America/New_York"):
        made.write(cast("DataFrame", batch), 0)
    assert (found(tmp_path), batch.evaluated) == ({}, 0)


def test_a_partition_with_a_long_name_is_refused_before_the_decision(leadership: Leadership, tmp_path: Path) -> None:
    day = 10 ** (MOST_BYTES - len("day="))
    with output(leadership, tmp_path) as made:
        with pytest.raises(InvalidName, match=f"may have {MOST_BYTES} bytes"):
            write(made, leadership, 0, day)
        ended(leadership)
        assert write(made, leadership, 0, day // 10)
    assert found(tmp_path).keys() == {f"day={day // 10}/batch=0"}


def test_what_cannot_be_committed_is_refused(leadership: Leadership, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="no partitions to commit: give partition_by"):
        Output(leadership, (tmp_path / "out").as_uri(), commit=BY_WATERMARK)
    (tmp_path / "out").mkdir(exist_ok=True)
    with output(leadership, tmp_path) as made:
        one = DayBatch(leadership, 0, 0)
        shutil.rmtree(Path(leadership.directory.removeprefix("file://"), "spark", "orders"))
        with pytest.raises(InvalidSettings, match="The query's checkpoint is not below the leader directory"):
            made.write(cast("DataFrame", one), 0)
    assert found(tmp_path) == {}
    assert not any("ready/" in each for each in left(leadership)), "nothing was decided"


def test_a_repaired_batch_is_committed(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver has died after the decision, and ``ha output repair`` completes the batch."""
    with output(leadership, tmp_path) as made:
        write(made, leadership, 0, 5)
        with monkeypatch.context() as patch:
            patch.setattr(Partitions, "open", lambda *_: pytest.fail("died"))
            with pytest.raises(pytest.fail.Exception):
                write(made, leadership, 1, 6)
    home = f"out/{own_folder(leadership).name}"
    (row,) = _repaired(
        leadership, JournalOutput("output", home, f"{tmp_path}/out", [1], [0]), accept_loss=False, write_again=False
    )
    assert row["result"] == "complete"
    with output(leadership, tmp_path) as made:
        assert made.commit_pending() == 2
    assert marked(tmp_path) == [5, 6]


def test_rows_that_are_put_away_take_markers_along(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        write(made, leadership, 1, 0, 9)
        write(made, leadership, 2, 1)
        write(made, leadership, 3, 0, 2)
    assert marked(tmp_path) == [0, 1, 2]
    renames = FencedRename(leadership, (tmp_path / "out").as_uri())
    aside = SettingAside(OutputFolder(renames, f"{renames.inside}/out/{own_folder(leadership).name}", "output"))
    aside.put_away(2, f"{renames.inside}/aside")
    aside.put_away(2, f"{renames.inside}/aside")
    assert marked(tmp_path) == [1]
    aside.bring_back(f"{renames.inside}/aside")
    ended(leadership)
    with output(leadership, tmp_path) as made:
        assert not write(made, leadership, 3, 0, 2)
        assert marked(tmp_path) == [0, 1, 2]
    renames.close()


def test_calls_of_a_batch(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for a partition that becomes pending, five for a commit; four more if rows are late.

    Without a partition commit there is none of them: see ``test_output_loss.py``.
    """
    calls = count_calls(monkeypatch, Leadership)
    with output(leadership, tmp_path) as made:
        spent = []
        for number, days in enumerate([[8], [8], [8, 9], [2], [2, 8]]):
            calls.clear()
            write(made, leadership, number, *days)
            spent.append(len(calls) - (5 + 2 * len(days)))
    usual, first, new, commit, late = 1, 2 + 5 + 2 + 2, 1 + 1, 5, 4  # the first one also marks that each one comes
    assert spent[:3] == [first + usual, usual, usual + new]
    assert spent[3] == usual + new + commit
    assert spent[4] == usual + late + commit + 1


def test_names_hold_what_is_remembered() -> None:
    note = PartitionNote(7, 12, "day=a^b/hour=2".replace("^", "%5E"))
    assert note.name == "7~12~day=a%5Eb^hour=2"
    assert PartitionNote.parse(note.name) == note
    assert PartitionNote.parse("0123abc") is None


def test_an_answer_that_is_lost_for_good_is_said(leadership: Leadership, tmp_path: Path, monkeypatch: Any) -> None:
    def lose(*_: object) -> None:
        raise ConnectionLost("no answer")

    with output(leadership, tmp_path) as made:
        with monkeypatch.context() as patch:
            patch.setattr(LocalFiles, "write", lose)
            with pytest.raises(ConnectionLost):
                write(made, leadership, 1, 0)
        assert not write(made, leadership, 1, 0)
    assert marked(tmp_path) == [0]


@pytest.mark.spark
@pytest.mark.hdfs
def test_with_a_table_and_the_watermark_of_a_real_query(spark: SparkSession, job: str, tmp_path: Path) -> None:
    """Two drivers, one after the other; the second one has late rows."""
    table, told = f"orders_{job.replace('-', '_')}", list[CommittedPartition]()
    (tmp_path / "in").mkdir()
    target = (tmp_path / "out").as_uri()
    commit = PartitionCommit(
        trigger=PARTITION_TIME, delay=86_400, policy=["metastore", "success-file", told.append], table=table
    )
    spark.sql(
        f"CREATE TABLE {table} (at TIMESTAMP, day STRING, batch BIGINT) USING parquet PARTITIONED BY (day, batch) "
        f"LOCATION '{target}'"
    )

    def drive(*days: int) -> None:
        with leading(job, (tmp_path / "jobs").as_uri()) as leadership:
            location = checkpoint_location(leadership, "orders")
            for day in days:
                line = json.dumps({"at": f"2026-11-{day:02d}T10:00:00Z", "day": f"2026-11-{day:02d}"})
                (tmp_path / "in" / f"{len(told)}-{day}-{uuid.uuid4().hex}.json").write_text(f"{line}\n")
                lines = spark.readStream.schema("at timestamp, day string").json((tmp_path / "in").as_uri())
                with Output(leadership, target, source="parquet", partition_by=["day"], commit=commit) as made:
                    query = (
                        lines.withWatermark("at", "0 seconds")
                        .writeStream.queryName("orders")
                        .option("checkpointLocation", location)
                        .trigger(availableNow=True)
                        .foreachBatch(made)
                        .start()
                    )
                    query.awaitTermination()

    def of_table() -> list[tuple[str, int]]:
        return sorted((row.day, row.batch) for row in spark.table(table).collect())

    try:
        drive(1, 2, 4)
        assert [(each.path, each.batches) for each in told] == [("day=2026-11-01", [0])]
        assert of_table() == [("2026-11-01", 0)]
        assert sorted(each.parent.name for each in (tmp_path / "out").rglob(MARKER)) == ["day=2026-11-01"]
        drive(1)
        assert [(each.path, each.batches) for each in told[1:]] == [("day=2026-11-02", [1]), ("day=2026-11-01", [0, 3])]
        assert of_table() == [("2026-11-01", 0), ("2026-11-01", 3), ("2026-11-02", 1)]
        with (
            leading(job, (tmp_path / "jobs").as_uri()) as leadership,
            Output(leadership, target, source="parquet", partition_by=["day"], commit=commit) as made,
        ):
            assert made.commit_pending() == 1
        assert of_table()[-1] == ("2026-11-04", 2)
    finally:
        spark.sql(f"DROP TABLE {table}")
