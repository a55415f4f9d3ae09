"""Declared queries in one real session on real HDFS: a region that fails restarts, and no other notices."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import ha.spark
from ha.cli.commands import app
from ha.leadership.leadership import Leadership
from ha.program import request_file
from ha.program.request_file import Answer, Wanted
from leader.errors import Fenced, InvalidName, InvalidSettings, NotLeader, QueryFailed
from leader.job.request_folder import State
from tests.limits import HANGS_S
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import eventually, fence, leading

pytestmark = [pytest.mark.spark, pytest.mark.hdfs]

QUICK = {"restart_strategy": "fixed-delay", "restart_attempts": 1000, "restart_delay": 0.2}
NEVER = {"restart_strategy": "none"}


def declare(job: str, root: str, **settings: Any) -> ha.spark.Job:
    return ha.spark.Job(job, files=root, zookeeper="", **settings)


def feed(folder: Path, number: int, *values: int) -> None:
    folder.mkdir(exist_ok=True)
    staged = folder.parent / f"{folder.name}-{number}"
    staged.write_text("".join(f"{value}\n" for value in values))
    staged.rename(folder / f"{number}.txt")


def numbers(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(exist_ok=True)
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(folder.as_uri())
    return lines.select(F.col("value").cast("long"))


class Shown:
    """The job's queries, as ``ha job queries --json`` prints them."""

    def __init__(self, job: str, root: str) -> None:
        self._arguments = ["job", "queries", job, "--json", "--files", root]

    def __call__(self) -> dict[str, dict[str, Any]]:
        outcome = CliRunner().invoke(app, self._arguments)
        if outcome.exit_code:
            return {}
        return {each["query"]: each for each in json.loads(outcome.stdout)["queries"]}

    def states(self) -> dict[str, str]:
        return {name: each["state"] for name, each in self().items()}


class Background:
    def __init__(self, declared: ha.spark.Job, spark: SparkSession) -> None:
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(declared, spark))

    def _run(self, declared: ha.spark.Job, spark: SparkSession) -> None:
        try:
            declared.run(spark, timeout=PATIENCE_S)
        except BaseException as error:  # noqa: BLE001  # the test looks at it
            self.error = error


@contextmanager
def running(declared: ha.spark.Job, spark: SparkSession, leaderships: list[Leadership]) -> Iterator[Background]:
    """Run a job, and resign at the end if it has not ended by itself."""
    background = Background(declared, spark)
    background.thread.start()
    try:
        yield background
    finally:
        if background.thread.is_alive() and leaderships:
            leaderships[-1].resign()
        background.thread.join(PATIENCE_S)
        assert not background.thread.is_alive()


class Taken:
    """The values of the batches; a batch that is repeated, because its query was stopped inside it, counts once."""

    def __init__(self) -> None:
        self.batches: dict[int, list[int]] = {}

    def all(self) -> list[int]:
        return [value for number in sorted(self.batches) for value in self.batches[number]]


def adding(taken: Taken, poison: threading.Event | None = None) -> Callable[[DataFrame, int], None]:
    def batch(rows: DataFrame, number: int) -> None:
        if poison is not None and poison.is_set():
            raise ArithmeticError("poison")
        taken.batches[number] = [row.value for row in rows.collect()]

    return batch


def test_only_a_poisoned_region_restarts(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    declared, shown = declare(job, hdfs_uri, **QUICK), Shown(job, hdfs_uri)
    bad, fed, well = Taken(), Taken(), Taken()
    poison, leaderships = threading.Event(), list[Leadership]()

    @declared.query(reads=["bad"], writes=["bad/out"])
    def poisoned(spark: SparkSession, leadership: Leadership) -> Any:
        leaderships.append(leadership)
        return numbers(spark, tmp_path / "bad").writeStream.foreachBatch(adding(bad, poison))

    @declared.query(reads=["bad/out", "fed"])
    def follower(spark: SparkSession, _: Leadership) -> Any:
        return numbers(spark, tmp_path / "fed").writeStream.foreachBatch(adding(fed))

    @declared.query(reads=["well"])
    def healthy(spark: SparkSession, _: Leadership) -> Any:
        return numbers(spark, tmp_path / "well").writeStream.foreachBatch(adding(well))

    def put(number: int) -> None:
        for name in ("bad", "fed", "well"):
            feed(tmp_path / name, number, number)

    put(1)
    with running(declared, spark, leaderships) as ran:
        eventually(lambda: (bad.all(), fed.all(), well.all()) == ([1], [1], [1]))
        eventually(lambda: shown.states() == dict.fromkeys(("poisoned", "follower", "healthy"), "RUNNING"))
        before = shown()
        assert [before[name]["region"] for name in ("poisoned", "follower", "healthy")] == [0, 0, 1]
        poison.set()
        put(2)
        eventually(lambda: (shown().get("poisoned") or {}).get("restarts", 0) >= 2)
        assert "poison" in shown()["poisoned"]["error"]
        eventually(lambda: {each.query for each in leaderships[0].exceptions.list()} == {"poisoned"})
        for number in (3, 4):
            put(number)
            eventually(lambda number=number: well.all() == list(range(1, number + 1)))  # type: ignore[misc]
        poison.clear()
        eventually(lambda: (bad.all(), fed.all()) == ([1, 2, 3, 4], [1, 2, 3, 4]))
        eventually(lambda: set(shown.states().values()) == {"RUNNING"})
        after = shown()
    assert isinstance(ran.error, NotLeader)
    assert after["healthy"]["run_id"] == before["healthy"]["run_id"]
    assert after["healthy"]["restarts"] == 0
    assert after["follower"]["restarts"] == after["poisoned"]["restarts"] >= 2
    assert after["follower"]["run_id"] != before["follower"]["run_id"]
    assert (bad.all(), fed.all(), well.all()) == ([1, 2, 3, 4],) * 3
    assert not spark.streams.active


def test_an_operator_has_a_query_started_again_in_place(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write and read as a sidecar does for ``ha job restart JOB --query clean``."""
    path = tmp_path / "restart-1"
    monkeypatch.setenv("HA_RESTART", str(path))
    monkeypatch.setenv("HA_SETTLE", str(tmp_path / "settle-1"))
    monkeypatch.setattr("ha.spark.supervision.job.supervised", lambda _: True)
    declared, shown = declare(job, hdfs_uri, **NEVER), Shown(job, hdfs_uri)
    leaderships, taken = list[Leadership](), {name: Taken() for name in ("clean", "sums", "other")}

    def ask(identity: str, query: str) -> Answer:
        request_file.ask(path, Wanted(identity, query))
        eventually(lambda: (found := request_file.answered(path, identity)) is not None and found.state.final)
        answer = request_file.answered(path, identity)
        assert answer is not None
        return answer

    def declare_query(name: str, reads: list[str], writes: list[str]) -> None:
        @declared.query(reads=reads, writes=writes, name=name)
        def query(spark: SparkSession, leadership: Leadership) -> Any:
            leaderships.append(leadership)
            return numbers(spark, tmp_path / name).writeStream.foreachBatch(adding(taken[name]))

    declare_query("clean", ["in"], ["rows"])
    declare_query("sums", ["rows"], [])
    declare_query("other", ["in"], [])
    for name in taken:
        feed(tmp_path / name, 1, 1)
    with running(declared, spark, leaderships):
        eventually(lambda: all(each.all() == [1] for each in taken.values()))
        eventually(lambda: set(shown.states().values()) == {"RUNNING"})
        before = shown()
        assert ask("one", "missing").said == "It has no query 'missing': it has clean, sums, other."
        assert ask("two", "clean") == Answer("two", State.DONE, "Started again: clean, sums.")
        eventually(lambda: [shown()[name]["restarts"] for name in taken] == [1, 1, 0])
        eventually(lambda: [shown()[name]["run_id"] != before[name]["run_id"] for name in taken] == [True, True, False])
        for name in taken:
            feed(tmp_path / name, 2, 2)
        eventually(lambda: all(each.all() == [1, 2] for each in taken.values()))
        assert {each.epoch for each in leaderships} == {1}
    assert not request_file.able(path)


def test_a_job_with_all_queries_finished_returns(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    declared, taken = declare(job, hdfs_uri, **NEVER), [Taken(), Taken()]
    feed(tmp_path / "in", 1, 1, 2, 3)
    for number in range(2):

        @declared.query(reads=["in"], name=f"query-{number}")
        def once(spark: SparkSession, _: Leadership, number: int = number) -> Any:
            writer = numbers(spark, tmp_path / "in").writeStream.trigger(availableNow=True)
            return writer.foreachBatch(adding(taken[number]))

    declared.run(spark, timeout=PATIENCE_S)
    assert [sorted(each.all()) for each in taken] == [[1, 2, 3], [1, 2, 3]]
    assert Shown(job, hdfs_uri).states() == {"query-0": "FINISHED", "query-1": "FINISHED"}
    with leading(job, hdfs_uri) as successor:
        assert dict(successor.checkpoints.state().queries) == {"query-0": 0, "query-1": 0}
        assert (successor.graph.load() or pytest.fail("no graph")).version == 1


def test_a_region_given_up_ends_the_program(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    declared, poison = declare(job, hdfs_uri, **NEVER), threading.Event()
    poison.set()
    feed(tmp_path / "in", 1, 1)

    @declared.query()
    def poisoned(spark: SparkSession, _: Leadership) -> Any:
        return numbers(spark, tmp_path / "in").writeStream.foreachBatch(adding(Taken(), poison))

    @declared.query()
    def healthy(spark: SparkSession, _: Leadership) -> Any:
        return numbers(spark, tmp_path / "other").writeStream.format("noop")

    with pytest.raises(QueryFailed, match=f"Job '{job}' ends, because a query has failed. poisoned: .*poison"):
        declared.run(spark, timeout=PATIENCE_S)
    assert not spark.streams.active
    assert Shown(job, hdfs_uri).states()["poisoned"] == "FAILED"


def test_a_region_that_failed_leaves_others_alone(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    declared, shown, sums = declare(job, hdfs_uri, **NEVER, failed_region="stay"), Shown(job, hdfs_uri), Taken()
    leaderships = list[Leadership]()

    @declared.query()
    def started_itself(spark: SparkSession, leadership: Leadership) -> Any:
        leaderships.append(leadership)
        return numbers(spark, tmp_path / "in").writeStream.format("noop").queryName("own").start()

    @declared.query()
    def healthy(spark: SparkSession, _: Leadership) -> Any:
        return numbers(spark, tmp_path / "in").writeStream.foreachBatch(adding(sums))

    with running(declared, spark, leaderships):
        eventually(lambda: shown.states() == {"started_itself": "FAILED", "healthy": "RUNNING"})
        feed(tmp_path / "in", 1, 7)
        eventually(lambda: sums.all() == [7])
        assert "without start()" in shown()["started_itself"]["error"]
        assert [query.name for query in spark.streams.active] == ["healthy"]


def test_a_fenced_job_uses_no_attempt(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    declared, sums, leaderships = declare(job, hdfs_uri, **QUICK), Taken(), list[Leadership]()

    @declared.query()
    def clicks(spark: SparkSession, leadership: Leadership) -> Any:
        leaderships.append(leadership)
        return numbers(spark, tmp_path / "in").writeStream.foreachBatch(adding(sums))

    feed(tmp_path / "in", 1, 1)
    with running(declared, spark, leaderships) as ran:
        eventually(lambda: sums.all() == [1])
        fence(leaderships[-1])
        feed(tmp_path / "in", 2, 2)
        ran.thread.join(PATIENCE_S)
    assert isinstance(ran.error, Fenced)
    assert len(leaderships) == 1


def test_a_batch_that_cannot_be_interrupted_ends_the_program(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path
) -> None:
    declared = declare(job, hdfs_uri, **QUICK, batch_deadline=1.0, stop_grace=1.0)
    wakes = threading.Event()

    def waits(_: DataFrame, __: int) -> None:
        wakes.wait(HANGS_S)

    feed(tmp_path / "in", 1, 1)

    @declared.query()
    def hanging(spark: SparkSession, _: Leadership) -> Any:
        return numbers(spark, tmp_path / "in").writeStream.foreachBatch(waits)

    try:
        with pytest.raises(QueryFailed, match="hanging did not stop within 1 s, after hanging: its batch after the st"):
            declared.run(spark, timeout=PATIENCE_S)
    finally:
        wakes.set()
    eventually(lambda: not spark.streams.active)


def test_mistakes_in_declarations_are_said_at_once() -> None:
    declared = ha.spark.Job("orders")
    with pytest.raises(InvalidSettings, match="has no queries: declare one"):
        declared.run()
    declared.query(name="a")(lambda _, __: None)
    with pytest.raises(InvalidName, match="two queries 'a'"):
        declared.query(name="a")(lambda _, __: None)
    with pytest.raises(InvalidName, match="not a name of a query"):
        declared.query(name="a b")(lambda _, __: None)
    with pytest.raises(InvalidName, match=r"give a list of names, such as \['kafka:orders'\]"):
        declared.query(name="b", reads="kafka:orders")(lambda _, __: None)


def test_a_query_that_runs_is_not_started_again(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    read = spark.readStream.text((tmp_path / "in").as_uri())
    writer = read.writeStream.format("noop").option("checkpointLocation", (tmp_path / "checkpoint").as_uri())
    first = ha.spark.reattach_or_start(spark, "adopted", writer.queryName("adopted").start)
    try:
        again = ha.spark.reattach_or_start(spark, "adopted", writer.start)
        assert (again.id, again.runId) == (first.id, first.runId)
    finally:
        first.stop()
    with pytest.raises(InvalidSettings, match=r"'adopted' was started as 'other': use queryName\('adopted'\)"):
        ha.spark.reattach_or_start(spark, "adopted", writer.queryName("other").start)
    assert not [each for each in spark.streams.active if each.name == "other"]


def test_a_declared_query_finds_formats_in_python(spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path) -> None:
    declared, active = declare(job, hdfs_uri), list[SparkSession | None]()
    feed(tmp_path / "in", 0, 1, 2)

    @declared.query()
    def clean(spark: SparkSession, _: Leadership) -> Any:
        active.append(SparkSession.getActiveSession())
        return numbers(spark, tmp_path / "in").writeStream.format("noop").trigger(availableNow=True)

    declared.run(spark)
    assert len(active) == 1
    assert active[0] is not None, "Spark looks for them in the active session of the thread"
