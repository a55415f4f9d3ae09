"""A merge in a directory that takes no more entries, on an HDFS of its own: the limit is one of all its directories."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ha.cli.commands import exit_code
from ha.outputs.folder import LIMIT
from ha.sandbox import Sandbox, hadoop_conf
from ha.spark import Output
from store.errors import NoSpace
from tests.system.spark.helpers import files_of, leading

ENTRIES = 40
OTHERS = 20
"""Files that somebody else has put there: the journal has as many entries as there are batches, and takes more."""

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]


@pytest.fixture
def small_hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    usual = hadoop_conf._SETTINGS["namenode"]
    monkeypatch.setitem(hadoop_conf._SETTINGS, "namenode", lambda *about: {**usual(*about), LIMIT: f"{ENTRIES}"})
    sandbox = Sandbox(tmp_path / "sandbox")
    sandbox.up(zookeepers=1, namenodes=1)
    try:
        for name, value in sandbox.environment().items():
            monkeypatch.setenv(name, value)
        yield sandbox.environment()["HA_FILES"]
    finally:
        sandbox.down(wipe=True)


def test_a_full_directory_is_merged_and_takes_batches_again(spark: SparkSession, job: str, small_hdfs: str) -> None:
    target = f"{small_hdfs}-out/{job}"
    with files_of(f"{small_hdfs}-out") as do:
        do(lambda files: files.make_root())
        do(lambda files: files.make_directory(job))
        for number in range(OTHERS):
            do(lambda files, at=f"{job}/_of-somebody-{number}": files.write(at, b""))  # type: ignore[misc]

    def batch(output: Output, number: int) -> None:
        output.write(spark.createDataFrame([(f"row of batch {number}",)], "value string"), number)

    def merge() -> int:
        return exit_code(["output", "merge", job, "--files", small_hdfs, "--files-each", "5", "--older-than", "1 ms"])

    with leading(job, small_hdfs) as leadership, Output(leadership, target, source="text", mergeable=True) as output:
        number = 0
        with suppress(NoSpace):
            for number in range(ENTRIES):
                batch(output, number)
        assert number > OTHERS / 2
        with files_of(target) as do:
            assert len(do(lambda files: files.list(""))) == ENTRIES
        assert merge() == 0
        batch(output, number)
        assert exit_code(["output", "verify", job, "--files", small_hdfs]) == 0
    rows = [row.value for row in spark.read.text(target).collect()]
    assert sorted(rows) == sorted(f"row of batch {each}" for each in range(number + 1))
