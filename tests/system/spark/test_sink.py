"""The format ``ha``: through crashes, repeated tasks and zombies in a simulated store, and with a real Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from ha.cli.commands import exit_code
from ha.leadership.leadership import Leadership
from ha.outputs.folder import OutputFolder
from ha.outputs.journal import Journal
from ha.outputs.moving import Moving
from ha.outputs.record import Record
from ha.program.output_report import OutputReports, paths_beside, read
from ha.spark import Output
from ha.spark.sink import writer
from ha.spark.sink.data_source import register_format
from ha.spark.sink.leader_home import LeaderHome, home_of
from ha.spark.sink.options import options_of
from ha.spark.sink.writer import HaWriter, Written
from leader.errors import InvalidSettings
from store.errors import ConnectionLost, NotFound
from tests.system.spark.faulty_store import FAULTS
from tests.system.spark.helpers import count_calls, fence, leading, names
from tests.system.spark.plain_reader import QUERY_ID, offsets
from tests.system.spark.sink_run import SinkRun, found

SEEDS = 150


pytestmark = pytest.mark.usefixtures("own_journals")


@pytest.mark.parametrize("seeds", [SEEDS // 3, SEEDS], ids=["some", "all"])
def test_each_batch_once_through_crashes_repeated_tasks_and_zombies(seeds: int) -> None:
    met: set[str] = set()
    strangers = replayed = aborted = 0
    for seed in range(seeds):
        run = SinkRun(seed)
        run.go()
        assert not run.reader.wrong, (seed, run.reader.wrong[:3])
        assert run.lost is None, f"{seed}: nobody has deleted anything. {run.lost}"
        assert len(run.reader.complete) == run.batches
        met |= set(run.store.met)
        strangers, replayed = strangers + run.met_strangers, replayed + run.replayed
        aborted += run.aborted
    assert met == {*FAULTS, "ok"}
    assert strangers > seeds
    assert replayed > seeds // 2
    assert aborted > seeds // 2


def test_a_journal_that_believes_whatever_lies_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stock = Moving.take_stock

    def believe(moving: Moving, attempt: str, wrote: Record) -> Record:
        return stock(moving, attempt, moving.look(f"{attempt}/rows") if wrote.files else wrote)

    monkeypatch.setattr(Moving, "take_stock", believe)
    assert found(SinkRun)


def test_an_attempt_that_is_open_to_zombies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "_sealed", lambda journal, attempt, *_: journal._folder.at("staged", attempt))
    assert found(SinkRun)


def test_a_process_that_thinks_it_is_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Journal, "_taken", lambda journal, _: journal._folder.at("own=1~" + "0" * 32))
    assert found(SinkRun)


def test_an_abort_that_deletes_what_was_decided_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def delete(journal: Any, _: str, batch: int) -> bool:
        journal._renames.remove(journal._folder.at(f"ready/{batch}"))
        return False

    monkeypatch.setattr(Journal, "abandon", delete)
    assert found(SinkRun)


ODD = ["a b", "x/y:z", "50%", "ä,=", "", "\x85", "it\x92s"]
"""Values that file systems and Spark do not like in names."""


def run(spark: SparkSession, source: Path, target: str, checkpoint: str, kind: str) -> None:
    lines = spark.readStream.schema("line string, part string, seen timestamp").parquet(str(source))
    if kind == "text":
        lines = lines.drop("seen")
    sink = lines.writeStream.format("ha").option("path", target).option("format", kind).option("partitionBy", "part")
    sink = sink.option("sink.partition-commit.policy.kind", "success-file")
    if checkpoint:
        sink = sink.option("checkpointLocation", checkpoint)
    query = sink.queryName(kind).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


@pytest.mark.spark
@pytest.mark.hdfs
def test_with_spark_on_hdfs(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    """Each format is read as it was written, below partitions that have the same names as with Output.

    Each partition is committed: the process that does it finds the query's checkpoint by its name, or where it is said.
    """
    moment = "2026-01-02 03:04:05.678901"
    frame = spark.createDataFrame([("x", value) for value in ODD], "line string, part string")
    stamped = frame.selectExpr("line", "part", f"timestamp '{moment}' seen").coalesce(1)
    stamped.write.parquet(str(tmp_path / "in"))
    with leading(job, hdfs_uri) as leadership:
        register_format(spark, leadership)
        spark.conf.set("spark.sql.streaming.checkpointLocation", leadership.path("spark"))
        with Output(leadership, f"{hdfs_uri}-out/{job}/usual", source="parquet", partition_by=["part"]) as output:
            output.write(stamped, 0)
        for kind in ("parquet", "orc", "text"):
            target = f"{hdfs_uri}-out/{job}/{kind}"
            run(spark, tmp_path / "in", target, leadership.path("spark/said") if kind == "orc" else "", kind)
            assert names(target) == names(f"{hdfs_uri}-out/{job}/usual")
            assert names(f"{target}/part=50%25") == ["_SUCCESS", "batch=0"]
            schema = "value string" if kind == "text" else "line string, seen timestamp"
            found = spark.read.format(kind).schema(f"{schema}, part string, batch int").load(target)
            expected = [("x", value, 0) if kind == "text" else ("x", moment, value, 0) for value in sorted(ODD)]
            shown = found if kind == "text" else found.withColumn("seen", found.seen.cast("string"))
            assert sorted(map(tuple, shown.fillna("").collect())) == expected
        fence(leadership)
        stamped.write.mode("append").parquet(str(tmp_path / "in"))
        with pytest.raises(StreamingQueryException, match=r"Epoch 1 of job .* is over"):
            run(spark, tmp_path / "in", target, leadership.path("spark/another"), "text")
    spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert names(f"{target}/part=50%25") == ["_SUCCESS", "batch=0"]


def writer_of(leadership: Leadership, tmp_path: Path, **given: str) -> HaWriter:
    """Return what Spark makes for each batch, and for each commit; it has planned some batches of the query."""
    home = home_of(leadership)
    checkpoint = Path(leadership.directory.removeprefix("file://"), "spark", "q")
    if not checkpoint.exists():
        (checkpoint / "offsets").mkdir(parents=True)
        (checkpoint / "metadata").write_text(f'{{"id":"{QUERY_ID}"}}')
        for number in range(9):
            (checkpoint / "offsets" / f"{number}").write_bytes(offsets(number))
    options = {"path": f"{tmp_path}/out", "format": "text", "queryName": "q", **given}
    return HaWriter(home, options_of(options, home.directory))


def wrote(by: HaWriter, rows: dict[str, list[Any]]) -> Written:
    message = by.write(iter([pa.RecordBatch.from_pydict(rows)]))
    message.query = QUERY_ID  # as the task's context says it
    return message


@pytest.mark.parametrize(("partitions", "usual"), [(0, 7), (1, 6 + 2), (4, 6 + 2 * 4)])
def test_calls_of_a_batch(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, usual: int
) -> None:
    """One more than the journal's, for what the batch was planned to read."""
    calls = count_calls(monkeypatch, LeaderHome)
    rows: dict[str, list[Any]] = {"value": ["x"] * max(1, partitions)}
    if partitions:
        rows["part"] = [*range(partitions)]
    spent = []
    for number in range(4):
        tasks, commits = (writer_of(leadership, tmp_path, partitionBy="part" * bool(partitions)) for _ in "12")
        message = wrote(tasks, rows)
        calls.clear()
        commits.commit([message, None], number)
        spent.append(len(calls))
    assert spent[2:] == [usual, usual]


def test_a_batch_without_rows_is_complete(leadership: Leadership, tmp_path: Path) -> None:
    nothing: list[list[Any]] = [[], [None], [wrote(writer_of(leadership, tmp_path), {"value": []})]]
    for number, messages in enumerate(nothing):
        writer_of(leadership, tmp_path).commit(messages, number)
    (own,) = (Path(leadership.directory.removeprefix("file://")) / "out").iterdir()
    assert sorted(each.name for each in (own / "done" / "0").iterdir()) == ["0", "1", "2"]


def test_calls_of_a_batch_with_a_partition_commit(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more: nobody else may hold the notes. A marker costs five more."""
    calls = count_calls(monkeypatch, LeaderHome)
    given = {"partitionBy": "part", "sink.partition-commit.delay": "3000 s"}
    spent = []
    for number in range(5):
        message = wrote(writer_of(leadership, tmp_path, **given), {"value": ["x"], "part": [1]})
        calls.clear()
        writer_of(leadership, tmp_path, **given).commit([message], number)
        spent.append(len(calls))
    assert spent[1:] == [9, 9, 9 + 5, 9 + 4]  # the last one is late
    assert not (tmp_path / "out" / "part=1" / "_SUCCESS").exists()


def test_offsets_that_are_elsewhere_are_said_before_anything_is_decided(leadership: Leadership, tmp_path: Path) -> None:
    message = wrote(writer_of(leadership, tmp_path, queryName="other"), {"value": ["x"]})
    with pytest.raises(InvalidSettings, match="The query's checkpoint is not below the leader directory"):
        writer_of(leadership, tmp_path, queryName="other").commit([message], 0)
    assert not (tmp_path / "out").exists()


def test_rows_are_counted_by_partition(
    leadership: Leadership, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the messages that Spark has taken, and of no other try of a task."""
    tasks = writer_of(leadership, tmp_path, partitionBy="part")
    messages: list[Any] = [wrote(tasks, {"value": ["x"] * len(parts), "part": parts}) for parts in ([1, 2, 1], [2, 1])]
    wrote(tasks, {"value": ["twice"], "part": [1]})
    kept: list[Record] = []
    stock = Moving.take_stock

    def seen(moving: Moving, attempt: str, of: Record) -> Record:
        kept.append(stock(moving, attempt, of))
        return kept[-1]

    monkeypatch.setattr(Moving, "take_stock", seen)
    writer_of(leadership, tmp_path, partitionBy="part").commit(messages, 0)
    assert kept[0].rows == {"part=1": 3, "part=2": 2}
    jobs = leadership.directory.rpartition("/orders/")[0]
    assert exit_code(["output", "list", "orders", "--batches", "0", "--files", jobs]) == 0
    assert "batch 0  complete  4 files, 5 rows, 10 bytes in 2 partitions" in capsys.readouterr().out


def test_a_file_that_is_gone_before_the_decision_is_missed(leadership: Leadership, tmp_path: Path) -> None:
    """Its task has told of it, so the batch is not published without it."""
    tasks = writer_of(leadership, tmp_path)
    messages: list[Any] = [wrote(tasks, {"value": [text]}) for text in ("one", "two")]
    next(Path(tasks._rows.removeprefix("file://")).iterdir()).unlink()
    with pytest.raises(NotFound, match=r"has written of batch 0 of query 'q' .* for output 'output' is gone"):
        writer_of(leadership, tmp_path).commit(messages, 0)
    writer_of(leadership, tmp_path).abort(messages, 0)
    assert list((tmp_path / "out").iterdir()) == []
    again = writer_of(leadership, tmp_path)
    writer_of(leadership, tmp_path).commit([wrote(again, {"value": ["one"]})], 0)
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["batch=0"]


def test_an_abort_after_a_decision_keeps_the_batch(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    message = wrote(writer_of(leadership, tmp_path), {"value": ["first"]})
    with monkeypatch.context() as patch:
        patch.setattr(Moving, "move", lambda *_: (_ for _ in ()).throw(ConnectionLost("no answer")))
        with pytest.raises(ConnectionLost):
            writer_of(leadership, tmp_path).commit([message], 0)
    writer_of(leadership, tmp_path).abort([message], 0)
    assert "Batch 0 of output output has failed after it was decided" in caplog.text
    second = wrote(writer_of(leadership, tmp_path), {"value": ["second"]})
    writer_of(leadership, tmp_path).commit([second], 0)
    (file,) = (tmp_path / "out" / "batch=0").iterdir()
    assert file.read_text() == "first\n"


def test_a_process_that_fails_while_it_settles_settles_again(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has left its mark by then, and does not know yet what another process has published meanwhile."""
    processes: list[dict[Any, Journal]] = [{}, {}]

    def commit(process: int, batch: int) -> None:
        message = wrote(writer_of(leadership, tmp_path), {"value": [f"by {process}"]})
        monkeypatch.setattr(writer, "_journals", processes[process])
        writer_of(leadership, tmp_path).commit([message], batch)

    commit(0, 0)
    commit(1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(OutputFolder, "keep", lambda *_: (_ for _ in ()).throw(ConnectionLost("no answer")))
        patch.setattr(writer, "_journals", processes[0])
        with pytest.raises(ConnectionLost):
            writer_of(leadership, tmp_path).commit([], 1)
    monkeypatch.setattr(Moving, "move", lambda *_: pytest.fail("batch 1 was published"))
    commit(0, 1)
    (file,) = (tmp_path / "out" / "batch=1").iterdir()
    assert file.read_text() == "by 1\n"


def test_an_abort_that_knows_nothing_leaves_it_to_the_next_commit(leadership: Leadership, tmp_path: Path) -> None:
    lost = writer_of(leadership, tmp_path)
    wrote(lost, {"value": ["nobody's"]})
    writer_of(leadership, tmp_path).abort([None], 0)
    message = wrote(writer_of(leadership, tmp_path), {"value": ["rows"]})
    writer_of(leadership, tmp_path).commit([message], 0)
    assert not Path(lost._rows.removeprefix("file://")).exists()


def test_what_a_sidecar_is_told(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_QUERIES", str(tmp_path / "queries-1"))
    monkeypatch.setattr("ha.outputs.journal.REPORTS", reports := OutputReports())
    monkeypatch.setattr(writer, "REPORTS", reports)
    message = wrote(writer_of(leadership, tmp_path), {"value": ["rows"]})
    writer_of(leadership, tmp_path).commit([message], 0)
    (path,) = paths_beside(tmp_path / "queries-1")
    assert read(path)[0].files["renamed"] == 1


def test_another_leader_has_another_journal(leadership: Leadership, tmp_path: Path) -> None:
    first = writer_of(leadership, tmp_path)._journal()
    assert writer_of(leadership, tmp_path)._journal() is first
    assert writer_of(leadership, tmp_path, name="other")._journal() is not first
    assert len(writer._journals) == 1
