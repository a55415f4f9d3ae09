"""Real streaming queries whose completed batches become the job's checkpoints."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha
from ha.leadership.leadership import Leadership
from ha.spark import checkpoint_location, publish_checkpoints
from leader.layout import checkpoint_state
from leader.layout.checkpoint import Metadata
from leader.layout.znodes import checkpoints_path
from store.errors import NotFound
from store.zookeeper import Get, ZooKeeper
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import eventually, leading

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper]

QUERY = "lines"


@contextmanager
def query(spark: SparkSession, leadership: Leadership, source: Path) -> Iterator[StreamingQuery]:
    started = (
        spark.readStream.option("maxFilesPerTrigger", 1)
        .text(source.as_uri())
        .writeStream.queryName(QUERY)
        .option("checkpointLocation", checkpoint_location(leadership, QUERY))
        .format("noop")
        .start()
    )
    try:
        yield started
    finally:
        started.stop()


def feed(source: Path, number: int) -> None:
    hidden = source / f".{number}"
    hidden.write_text("some words\n")
    hidden.rename(source / f"{number:03d}.txt")


def copy(zookeeper: ZooKeeper, job: str) -> dict[str, int] | None:
    try:
        data, _ = zookeeper.call(Get(checkpoints_path(job)), PATIENCE_S)
    except NotFound:
        return None
    state = checkpoint_state.decode(data, job)
    return state.queries if state else None


@pytest.fixture
def zookeeper(zookeeper_hosts: str) -> Iterator[ZooKeeper]:
    client = ZooKeeper(zookeeper_hosts, session_timeout=10.0)
    client.start()
    client.wait(PATIENCE_S)
    yield client
    client.close()


def test_every_batch_is_published(
    spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with (
        leading(job, hdfs_uri, zookeeper_hosts) as leadership,
        publish_checkpoints(spark, leadership),
        query(spark, leadership, tmp_path) as running,
    ):
        for number in range(4):
            feed(tmp_path, number)
            running.processAllAvailable()
            eventually(lambda number=number: leadership.checkpoints.state().queries.get(QUERY) == number)  # type: ignore[misc]
            eventually(lambda number=number: copy(zookeeper, job) == {QUERY: number})  # type: ignore[misc]


def test_what_a_crash_left_unpublished_is_published_by_the_successor(
    spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with leading(job, hdfs_uri, zookeeper_hosts) as first:
        for number in range(3):
            feed(tmp_path, number)
        with query(spark, first, tmp_path) as running:  # as if each of its events had been lost
            running.processAllAvailable()
        assert not first.checkpoints.state().queries
    with leading(job, hdfs_uri, zookeeper_hosts) as second, publish_checkpoints(spark, second):
        assert second.epoch == first.epoch + 1
        eventually(lambda: second.checkpoints.state().queries == {QUERY: 2})
        eventually(lambda: copy(zookeeper, job) == {QUERY: 2})
        feed(tmp_path, 3)
        with query(spark, second, tmp_path) as running:
            running.processAllAvailable()
            assert running.lastProgress is not None
            assert running.lastProgress["batchId"] >= 3  # it continued, and did not start again
            eventually(lambda: copy(zookeeper, job) == {QUERY: 3})


def test_a_successor_that_completes_nothing_copies_what_is_there(
    spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with leading(job, hdfs_uri, zookeeper_hosts) as first, publish_checkpoints(spark, first):
        feed(tmp_path, 0)
        with query(spark, first, tmp_path) as running:
            running.processAllAvailable()
        eventually(lambda: first.checkpoints.state().queries == {QUERY: 0})
    with leading(job, hdfs_uri, zookeeper_hosts) as second, publish_checkpoints(spark, second):
        eventually(lambda: copy(zookeeper, job) == {QUERY: 0})


@pytest.mark.timed
def test_the_listener_holds_up_nothing(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with leading(job, hdfs_uri) as leadership, publish_checkpoints(spark, leadership) as publisher:
        said: list[float] = []
        announce = publisher.progressed

        def timed(name: str | None, batch: int, metadata: Metadata) -> None:
            begun = time.perf_counter()
            announce(name, batch, metadata)
            said.append(time.perf_counter() - begun)

        monkeypatch.setattr(publisher._listener, "_progressed", timed)
        with query(spark, leadership, tmp_path) as running:
            for number in range(3):
                feed(tmp_path, number)
                running.processAllAvailable()
            eventually(lambda: len(said) >= 3)
        assert min(said) < 0.01  # the others may have met a pause of the whole machine


def test_what_spark_says_of_each_batch_is_kept_with_it(
    spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path
) -> None:
    with (
        leading(job, hdfs_uri, zookeeper_hosts, checkpoints_retained=3) as leadership,
        publish_checkpoints(spark, leadership),
        query(spark, leadership, tmp_path) as running,
        ha.connect(files=hdfs_uri, zookeeper=zookeeper_hosts) as client,
    ):
        for number in range(5):
            feed(tmp_path, number)
            running.processAllAvailable()
            eventually(lambda number=number: known_of(client, job) == (number, 1, f"logOffset={number}"))  # type: ignore[misc]
        kept = client.checkpoints(job)[QUERY]
        assert [(each.batch, each.metadata.rows) for each in kept] == [(2, 1), (3, 1), (4, 1)]
        assert all(each.metadata.duration_ms for each in kept)
        assert [each.metadata.state_rows for each in kept] == [None] * 3, "it has no state"
        assert [each.id for each in kept] == [3, 4, 5]
        assert client.checkpoint(job).epoch == leadership.epoch
        assert leadership.checkpoints.next() == 6


def known_of(client: ha.Client, job: str) -> tuple[int, int | None, str] | None:
    latest = client.checkpoint(job).latest.get(QUERY)
    return (latest.batch, latest.metadata.rows, latest.metadata.offsets) if latest is not None else None
