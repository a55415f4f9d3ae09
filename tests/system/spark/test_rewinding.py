"""``ha checkpoint rewind`` with a real Spark on HDFS: published sums are exact after each choice and after an undo."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ha.spark
from ha.cli import exit_code
from ha.leadership.leadership import Leadership
from ha.spark.session.spark_session import configured
from ha.spark.session.spark_settings import MIN_BATCHES
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import names, rows

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]

ROOT = "published"


class Job:
    """A query that publishes each number of its input once, because its state knows those that it has seen."""

    def __init__(self, spark: SparkSession, job: str, root: str, source: Path) -> None:
        self.spark, self.job, self.root, self.source = spark, job, root, source
        self.out = f"{root}-{ROOT}/{job}"
        self.fed = 0

    def feed(self, count: int) -> None:
        for number in range(self.fed, self.fed + count):
            hidden = self.source / f".{number}"
            hidden.write_text(f"{1 << number}\n")
            os.utime(hidden, (1_000_000_000 + number,) * 2)  # Spark takes files by age
            hidden.rename(self.source / f"{number:03d}.txt")
        self.fed += count

    def run(self, files_per_batch: int = 1) -> None:
        few = configured(self.spark, {MIN_BATCHES: "2"})  # for the checkpoints that are listed Spark retains more
        leading = ha.spark.lead(self.job, self.spark, timeout=PATIENCE_S, files=self.root, zookeeper="")
        with few, leading as leadership:
            self._process(leadership, files_per_batch)

    def _process(self, leadership: Leadership, files_per_batch: int) -> None:
        lines = self.spark.readStream.option("maxFilesPerTrigger", files_per_batch).text(self.source.as_uri())
        with ha.spark.Output(leadership, self.out, "numbers") as output:
            query = lines.dropDuplicates(["value"]).writeStream.queryName("once").foreachBatch(output).start()
            try:
                query.processAllAvailable()
            finally:
                query.stop()

    def rewind(self, *arguments: str) -> int:
        return exit_code(
            ["checkpoint", "rewind", self.job, "once", *arguments, "--yes", "--files", self.root, "--zookeeper", ""]
        )

    @property
    def batches(self) -> dict[int, int]:
        """The sum of each batch that readers see, by its number; each file has another bit."""
        found = rows(self.out)
        return {
            int(name.removeprefix("batch=")): sum(int(str(row["value"])) for row in each)
            for name, each in sorted(found.items())
        }


def bits(first: int, last: int) -> int:
    return sum(1 << each for each in range(first, last + 1))


def test_sums_are_exact_after_a_rewind_with_each_choice(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    it = Job(spark, job, hdfs_uri, tmp_path)
    it.feed(8)
    it.run()
    first = {number: 1 << number for number in range(8)}
    assert it.batches == first

    assert it.rewind("--to", "4") == 2, "nothing is done before the user says what becomes of the later batches"
    assert "numbers, batches 5 to 7" in capsys.readouterr().err
    assert it.rewind("--to", "4", "--outputs", "aside") == 0
    kept = {number: 1 << number for number in range(5)}
    assert it.batches == kept
    it.feed(1)
    it.run(files_per_batch=3)  # other batches than before: a journal that knew the old ones would drop rows
    assert it.batches == {**kept, 5: bits(5, 7), 6: bits(8, 8)}
    assert sum(it.batches.values()) == bits(0, 8), "each row once"

    assert it.rewind("--to", "4", "--outputs", "keep") == 0
    it.run(files_per_batch=1)
    again = {6 + number: 1 << (4 + number) for number in range(1, 5)}
    assert it.batches == {**kept, 5: bits(5, 7), 6: bits(8, 8), **again}
    assert sum(it.batches.values()) == bits(0, 8) + bits(5, 8), "those after batch 4 twice"
    it.feed(1)
    it.run()
    assert it.batches[11] == bits(9, 9), "numbers go on"

    assert it.rewind("--undo") == 0
    assert it.batches == {**kept, 5: bits(5, 7), 6: bits(8, 8)}
    it.run()
    assert it.batches == {**kept, 5: bits(5, 7), 6: bits(8, 8), 7: bits(9, 9)}
    assert sum(it.batches.values()) == bits(0, 9)
    assert len(names(it.out)) == 8
