"""Leading with a Spark session in this process, on real HDFS."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import ha.spark
from ha.leadership.leadership import Leadership
from ha.spark.session.spark_session import stop_queries
from leader.errors import Fenced, InvalidSettings, NotLeader, QueryFailed
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import eventually, fence, leading, names
from tests.system.spark.test_checkpoints import feed

pytestmark = [pytest.mark.spark, pytest.mark.hdfs]


def lead(job: str, spark: SparkSession, root: str) -> ha.spark.lead:
    return ha.spark.lead(job, spark, timeout=PATIENCE_S, files=root, zookeeper="")


def start(spark: SparkSession, source: Path, query: str = "lines") -> StreamingQuery:
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(source.as_uri())
    return lines.writeStream.queryName(query).format("noop").start()


def test_many_queries_are_led_and_published(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    feed(tmp_path, 0)
    with lead(job, spark, hdfs_uri) as leadership:
        assert spark.conf.get("spark.ha.job") == job
        queries = [start(spark, tmp_path, name) for name in ("first", "second")]
        for query in queries:
            query.processAllAvailable()
    assert not any(query.isActive for query in queries), "they end with the block"
    assert spark.conf.get("spark.ha.job", None) is None
    assert spark.conf.get("spark.sql.streaming.checkpointLocation", None) is None
    with leading(job, hdfs_uri) as successor:
        assert names(successor.path("spark")) == ["first", "second"]
        assert dict(successor.checkpoints.state().queries) == {"first": 0, "second": 0}
        assert successor.epoch == leadership.epoch + 1


def test_a_fenced_query_ends_and_says_by_whom(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    def run() -> None:
        with lead(job, spark, hdfs_uri) as leadership:
            query = start(spark, tmp_path)
            feed(tmp_path, 0)
            query.processAllAvailable()
            fence(leadership)
            feed(tmp_path, 1)
            query.awaitTermination()

    says = rf"Epoch 1 of job '{job}' was fenced: another contender has taken over, and the job is at epoch 2, session "
    with pytest.raises(Fenced, match=says) as raised:
        run()
    assert isinstance(raised.value.__cause__, StreamingQueryException)


def test_one_asked_to_hand_over_stops_its_queries(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    def run() -> None:
        with lead(job, spark, hdfs_uri) as leadership:
            query = start(spark, tmp_path)
            threading.Thread(target=leadership.resign).start()
            query.awaitTermination()  # returns without an error: it was stopped

    with pytest.raises(NotLeader, match="was over before the work was"):
        run()
    with leading(job, hdfs_uri) as successor:
        assert "released" in "".join(successor.names("history"))


def test_nothing_goes_on_or_begins_after_the_end(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    """Neither a query of another session, nor one that the program starts whatever happens, in the block or later."""
    feed(tmp_path, 0)
    refused: list[str] = []
    stopped: list[StreamingQueryException] = []

    def try_all() -> None:
        for session in (spark, spark.newSession()):
            try:
                start(session, tmp_path)
            except NotLeader as error:
                refused.append(str(error))

    def run() -> None:
        with lead(job, spark, hdfs_uri) as leadership:
            query, other = start(spark, tmp_path), start(spark.newSession(), tmp_path, "other")
            threading.Thread(target=leadership.resign).start()
            try:
                query.awaitTermination()
            except StreamingQueryException as error:  # it was stopped while it wrote
                stopped.append(error)
            eventually(lambda: not other.isActive)
            try_all()
            raise stopped[0] if stopped else StreamingQueryException("Failed to shutdown streamer")

    with pytest.raises(NotLeader, match="was over before the work was"):
        run()
    try_all()
    assert len(refused) == 4
    assert all("is over, so this query is not started" in each for each in refused)


def test_other_errors_stay_what_they_are(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    def run() -> None:
        with lead(job, spark, hdfs_uri):
            failing(spark, tmp_path).awaitTermination()

    with pytest.raises(StreamingQueryException, match="the user's own"):
        run()


def wrong(_: DataFrame, __: int) -> None:
    raise ArithmeticError("the user's own")


def failing(spark: SparkSession, source: Path, name: str = "wrong") -> StreamingQuery:
    feed(source, 0)
    return spark.readStream.text(source.as_uri()).writeStream.queryName(name).foreachBatch(wrong).start()


def test_a_query_that_fails_beside_others_is_said_and_the_block_raises_when_it_is_left(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def run() -> None:
        with lead(job, spark, hdfs_uri) as leadership:
            failing(spark, tmp_path)
            other = start(spark, tmp_path, "other")
            eventually(lambda: "wrong: ArithmeticError: the user's own" in caplog.text)
            eventually(lambda: [each.query for each in leadership.exceptions.list()] == ["wrong"])
            assert "ArithmeticError: the user's own" in leadership.exceptions.list()[0].trace
            assert other.isActive

    with pytest.raises(QueryFailed, match=f"A query of job '{job}' has failed. wrong: ArithmeticError"):
        run()


def test_the_failure_of_a_query_is_kept_before_the_block_is_over_and_raised_although_it_was_caught(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path
) -> None:
    def run() -> None:
        with lead(job, spark, hdfs_uri), suppress(StreamingQueryException):
            failing(spark, tmp_path).awaitTermination()

    with pytest.raises(QueryFailed, match="wrong: ArithmeticError: the user's own"):
        run()
    with leading(job, hdfs_uri) as successor:
        (kept,) = successor.exceptions.list()
    assert (kept.query, kept.epoch) == ("wrong", 1)
    assert kept.message.endswith("wrong: ArithmeticError: the user's own")


def test_a_query_that_is_started_again_is_fine(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    with lead(job, spark, hdfs_uri):
        with pytest.raises(StreamingQueryException):
            failing(spark, tmp_path, "again").awaitTermination()
        query = start(spark, tmp_path, "again")
        query.processAllAvailable()
        query.stop()
    with leading(job, hdfs_uri) as successor:  # the block has raised nothing
        assert [each.query for each in successor.exceptions.list()] == ["again"], "it is kept all the same"


def test_a_program_can_say_that_its_end_is_meant(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    with lead(job, spark, hdfs_uri) as leadership:
        query = failing(spark, tmp_path)
        leadership.finish()
        with pytest.raises(StreamingQueryException):
            query.awaitTermination()
    with leading(job, hdfs_uri) as successor:  # the block has raised nothing
        assert [each.query for each in successor.exceptions.list()] == ["wrong"], "it is kept all the same"


@contextmanager
def hanging(spark: SparkSession, source: Path, leadership: Leadership) -> Iterator[StreamingQuery]:
    inside, over = threading.Event(), threading.Event()

    def hang(_: DataFrame, __: int) -> None:
        inside.set()
        over.wait(PATIENCE_S)

    lines = spark.readStream.text(source.as_uri()).writeStream.queryName("hanging")
    query = lines.option("checkpointLocation", leadership.path("spark/hanging")).foreachBatch(hang).start()
    try:
        assert inside.wait(PATIENCE_S)
        yield query
    finally:
        over.set()
        query.stop()


def test_a_query_that_hangs_is_not_waited_for(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    feed(tmp_path, 0)
    with leading(job, hdfs_uri) as leadership, hanging(spark, tmp_path, leadership):
        (tmp_path / "none").mkdir()
        spark.conf.set("spark.sql.streaming.checkpointLocation", leadership.path("spark"))
        other = start(spark, tmp_path / "none", "other")
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
        assert not stop_queries(spark, 0.5), "it returns, though the batch goes on"
        eventually(lambda: not other.isActive)  # the others do not wait for it
    assert stop_queries(spark, 20.0)


def test_it_needs_a_jvm(job: str, hdfs_uri: str) -> None:
    with pytest.raises(InvalidSettings, match="has no JVM of its own"):
        lead(job, object(), hdfs_uri).__enter__()  # type: ignore[arg-type]
