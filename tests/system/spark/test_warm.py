"""Rehearsal of a query: it runs on the real stores and leaves nothing behind."""

import logging
import shutil
import socket
import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha.spark
from ha.spark.driver import rehearsal as warm
from ha.spark.driver.rehearsal import DIRECTORY
from ha.spark.session.private_names import scratch_directories
from ha.spark.session.spark_session import scratch_kept
from leader.errors import InvalidSettings
from tests.limits import joined
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import files_of, names
from tests.unit.ha.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]

QUERY = "rehearsed"
SAMPLE = b"a rose is a rose\n"


@pytest.fixture
def root(hdfs_uri: str, job: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("HA_GRANT", "HA_EPOCH", "HA_JOB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HA_FILES", f"{hdfs_uri}/{job}")
    with files_of(f"{hdfs_uri}/{job}") as do:
        do(lambda files: files.make_root())
    return f"{hdfs_uri}/{job}"


class Words:
    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.began: list[ha.spark.Rehearsal] = []
        self.batches: list[int] = []
        self.inside = threading.Event()

    def start(self, rehearsal: ha.spark.Rehearsal) -> StreamingQuery:
        self.began.append(rehearsal)
        output = ha.spark.Output(rehearsal.leadership, rehearsal.output)

        def publish(batch: DataFrame, batch_id: int) -> None:
            assert output.write(batch, batch_id)
            self.batches.append(batch_id)
            self.inside.set()

        lines = self.spark.readStream.text(rehearsal.input)
        location = ha.spark.checkpoint_location(rehearsal.leadership, QUERY)
        return (
            lines.groupBy("value").count().writeStream.queryName(QUERY).outputMode("update")
            .option("checkpointLocation", location).foreachBatch(publish).start()
        )  # fmt: skip


@pytest.fixture
def words(spark: SparkSession) -> Words:
    return Words(spark)


def test_the_query_runs_and_nothing_stays(spark: SparkSession, words: Words, root: str) -> None:
    assert ha.spark.warm_up(spark, words.start, SAMPLE)
    assert words.batches == [0, 1, 2], "the last one after a restart"
    assert [each.leadership.epoch for each in words.began] == [1, 1]
    assert not words.began[0].leadership.is_leader()
    assert names(root) == []
    assert not spark.streams.active


def test_a_function_puts_its_own_samples(spark: SparkSession, words: Words, root: str) -> None:
    def put(uri: str) -> None:
        assert uri == words.began[0].input
        spark.createDataFrame([("x",)], "value string").write.mode("append").text(uri)

    assert ha.spark.warm_up(spark, words.start, put, batches=1)
    assert words.batches == [0]
    assert names(root) == []


def test_a_session_whose_directories_a_cleaner_removed_while_it_waited_writes_again(spark: SparkSession) -> None:
    assert spark.range(100).repartition(7).count() == 100
    directories = scratch_directories(spark)
    with scratch_kept(spark):
        for each in {*(Path(each).parent for each in directories[:-1]), Path(directories[-1])}:
            assert each.is_dir()
            shutil.rmtree(each)
    assert spark.range(100).repartition(7).count() == 100
    assert spark.sparkContext.broadcast(["a"]).value == ["a"]


def test_what_fails_is_said_and_no_more(spark: SparkSession, root: str, caplog: pytest.LogCaptureFixture) -> None:
    def start(rehearsal: ha.spark.Rehearsal) -> StreamingQuery:
        def fail(batch: DataFrame, batch_id: int) -> None:
            raise ValueError(f"no batch {batch_id} of {batch.columns} today")

        return spark.readStream.text(rehearsal.input).writeStream.foreachBatch(fail).start()

    with caplog.at_level(logging.WARNING, "ha"):
        assert not ha.spark.warm_up(spark, start, SAMPLE)
    assert "The rehearsal has failed, and the query is not warm" in caplog.text
    assert names(root) == []
    assert not spark.streams.active


def test_the_endless_is_stopped(spark: SparkSession, words: Words, root: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ha"):
        for timeout in (0.5, 4, 32):  # on a busy machine the query may not even run before the end of the shorter ones
            caplog.clear()
            assert not ha.spark.warm_up(spark, words.start, timeout=timeout)  # nothing is put into its input
            if "does not end" not in caplog.text:
                break
            wait_until(lambda: all(each.name != "ha-rehearsal" for each in threading.enumerate()))
    assert "completed 0 of 3 batches" in caplog.text
    assert names(root) == []
    assert not spark.streams.active


def test_ended(spark: SparkSession, words: Words, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_GRANT", str(tmp_path / "grant"))

    def grant() -> None:
        assert words.inside.wait(PATIENCE_S)
        (tmp_path / "grant").touch()

    granting = threading.Thread(target=grant)
    granting.start()
    assert not ha.spark.warm_up(spark, words.start, SAMPLE, batches=1_000_000)
    joined(granting)
    assert words.batches[:1] == [0]
    assert names(root) == []
    assert not spark.streams.active


def test_a_program_that_leads_already_does_not_rehearse(
    spark: SparkSession, words: Words, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_EPOCH", "7")
    assert not ha.spark.warm_up(spark, words.start, SAMPLE)
    assert (words.began, names(root)) == ([], [])


def test_what_a_killed_rehearsal_left_is_dropped_when_it_is_old(
    spark: SparkSession, words: Words, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with files_of(root) as do:
        do(lambda files: files.make_directory(f"{DIRECTORY}left"))
    assert ha.spark.warm_up(spark, words.start, SAMPLE, batches=1)
    assert names(root) == [f"{DIRECTORY}left"], "it may be another host's, which is rehearsing now"
    monkeypatch.setattr(warm, "LEFT_OVER_MS", -warm.LEFT_OVER_MS)  # what was made a moment ago is old
    assert ha.spark.warm_up(spark, words.start, SAMPLE, batches=1)
    assert names(root) == []


@pytest.mark.parametrize("wrong", [{"batches": 0}, {"timeout": 0.0}, {"timeout": 1e9}, {"timeout": float("nan")}])
def test_what_cannot_be_a_rehearsal(spark: SparkSession, words: Words, wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidSettings, match="A rehearsal cannot have"):
        ha.spark.warm_up(spark, words.start, SAMPLE, **wrong)  # type: ignore[arg-type]


@pytest.mark.usefixtures("root")
def test_a_store_that_does_not_answer_keeps_nobody_from_standing_by(
    spark: SparkSession, words: Words, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, caplog.at_level(logging.WARNING, "ha"):
        monkeypatch.setenv("HA_FILES", f"hdfs://127.0.0.1:{silent.getsockname()[1]}/jobs")
        assert not ha.spark.warm_up(spark, words.start, SAMPLE, timeout=0.5)
    assert words.began == []
    assert "The rehearsal does not end" in caplog.text
    for thread in threading.enumerate():
        if thread.name == "ha-rehearsal":
            thread.join(PATIENCE_S)  # with the socket closed it fails and logs that now, not during another test
