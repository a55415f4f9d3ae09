"""Real queries continue with exactly the next batch in a job that adopts their checkpoint, and after an export."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ha.cli import exit_code
from ha.spark import checkpoint_location, publish_checkpoints
from ha.spark.tools import export_checkpoint, import_checkpoint
from tests.system.spark.helpers import eventually, files_of, leading

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper]

QUERY = "lines"
STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

Seen = list[tuple[int, int]]
"""Each batch, with the number of lines that its state has counted from the first one on."""


@contextmanager
def query(spark: SparkSession, source: Path, location: str, seen: Seen) -> Iterator[StreamingQuery]:
    """Count lines, with one file in each batch: after batch N there are N + 1."""

    def note(batch: DataFrame, batch_id: int) -> None:
        seen.extend((batch_id, row["count"]) for row in batch.collect())

    started = (
        spark.readStream.option("maxFilesPerTrigger", 1)
        .text(source.as_uri())
        .groupBy("value")
        .count()
        .writeStream.queryName(QUERY)
        .outputMode("update")
        .option("checkpointLocation", location)
        .foreachBatch(note)
        .start()
    )
    try:
        yield started
    finally:
        started.stop()


def run(spark: SparkSession, source: Path, location: str) -> Seen:
    seen: Seen = []
    with query(spark, source, location, seen) as running:
        running.processAllAvailable()
    return seen


def feed(source: Path, count: int) -> None:
    for _ in range(count):
        number = len(list(source.glob("*.txt")))
        hidden = source / f".{number}"
        hidden.write_text("a line\n")
        hidden.rename(source / f"{number:03d}.txt")


def batches(first: int, last: int) -> Seen:
    return [(number, number + 1) for number in range(first, last + 1)]


@pytest.fixture(params=["HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"])
def stateful(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(PROVIDER, f"{STATE}{request.param}")
    yield spark
    spark.conf.unset(PROVIDER)


def test_a_query_is_adopted_goes_on_and_is_exported_while_it_runs(
    stateful: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path
) -> None:
    bare, out = (f"{hdfs_uri}-bare/{uuid.uuid4().hex}" for _ in range(2))
    feed(tmp_path, 3)
    assert run(stateful, tmp_path, bare) == batches(0, 2)
    with leading(job, hdfs_uri, zookeeper_hosts) as leadership, publish_checkpoints(stateful, leadership):
        assert import_checkpoint(leadership, QUERY, bare).batch == 2
        feed(tmp_path, 1)
        seen: Seen = []
        with query(stateful, tmp_path, checkpoint_location(leadership, QUERY), seen) as running:
            running.processAllAvailable()
            eventually(lambda: leadership.checkpoints.state().queries == {QUERY: 3})
            feed(tmp_path, 5)  # one batch after the other while it is copied
            copied = export_checkpoint(job, QUERY, out, files=hdfs_uri, zookeeper="")
            running.processAllAvailable()
        assert seen == batches(3, 8)
    assert copied.batch is not None
    assert 3 <= copied.batch <= 8
    feed(tmp_path, 1)
    assert run(stateful, tmp_path, out) == batches(copied.batch + 1, 9)
    with files_of(bare) as do:
        assert do(lambda files: sorted(each.name for each in files.list("commits"))) == ["0", "1", "2"], (
            "it was only read"
        )


def test_on_the_command_line(
    spark: SparkSession,
    job: str,
    hdfs_uri: str,
    zookeeper_hosts: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, bare, out = tmp_path / "in", (tmp_path / "bare").as_uri(), (tmp_path / "out").as_uri()
    source.mkdir()
    feed(source, 1)
    run(spark, source, bare)
    stores = ["--files", hdfs_uri, "--zookeeper", zookeeper_hosts]
    assert exit_code(["checkpoint", "import", job, QUERY, bare, "--json", *stores]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["job"], said["query"], said["batch"], said["kept"], said["replaced"]) == (job, QUERY, 0, 0, "")
    assert exit_code(["checkpoint", "import", job, QUERY, bare, *stores]) == 1
    assert "has a checkpoint already" in capsys.readouterr().err
    assert exit_code(["checkpoint", "import", job, QUERY, bare, "--replace", *stores]) == 0
    assert f"`ha trash restore {job} --query {QUERY}`" in capsys.readouterr().out
    assert exit_code(["trash", "restore", job, "--query", QUERY, *stores]) == 0
    with leading(job, hdfs_uri, zookeeper_hosts):
        capsys.readouterr()
        assert exit_code(["checkpoint", "import", job, QUERY, bare, "--replace", "--timeout", "0.5", *stores]) == 1
        assert f"Job {job!r} is led by" in capsys.readouterr().err
        assert exit_code(["checkpoint", "export", job, QUERY, out, *stores]) == 0
    assert f"{job}: {QUERY} is exported: batch 0" in capsys.readouterr().out
    assert exit_code(["checkpoint", "export", job, QUERY, out, *stores]) == 1
    assert "choose another directory" in capsys.readouterr().err
    feed(source, 1)
    assert run(spark, source, out) == [(1, 2)]
