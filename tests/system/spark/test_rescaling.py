"""``ha checkpoint rescale`` with a real Spark on HDFS: results are as without a stop, and it is undone exactly."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

import ha.spark
from ha.checkpoints.inspection import Inspection
from ha.cli import exit_code
from ha.spark.session.spark_session import configured
from ha.spark.stored import stored_state
from ha.spark.stored.stored_state import session_settings
from leader.errors import QueryFailed
from tests.patience import PATIENCE_S
from tests.system.checkpoints.rescaling import Run, stepwise
from tests.system.spark.helpers import rows
from tests.system.spark.test_closures import ALWAYS, FORMATS

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow]

QUERY = "sums"


def sums(lines: DataFrame) -> DataFrame:
    return lines.groupBy("key").agg(fn.sum("value").alias("sum"))


class Job:
    """A query that publishes the sums that each batch changes; its input grows by a file for each batch."""

    def __init__(self, spark: SparkSession, job: str, root: str, source: Path) -> None:
        self.spark, self.job, self.root, self.source = spark, job, root, source
        self.out = f"{root}-published/{job}"
        self.fed = 0

    def feed(self, count: int) -> None:
        for number in range(self.fed, self.fed + count):
            hidden = self.source / f".{number}"
            lines = [{"key": f"k{(number + each) % 9}", "value": 1 << number} for each in range(4)]
            hidden.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
            os.utime(hidden, (1_000_000_000 + number,) * 2)  # Spark takes files by age
            hidden.rename(self.source / f"{number:03d}.json")
        self.fed += count

    def run(self, fail_at: int | None = None) -> None:
        """Lead the job until all input is done, or until a batch fails after it was published."""
        leading = ha.spark.lead(self.job, self.spark, timeout=PATIENCE_S, files=self.root, zookeeper="")
        failing = nullcontext() if fail_at is None else pytest.raises(QueryFailed, match="it dies before")
        with failing, leading as leadership:
            stream = self.spark.readStream.schema("key string, value long").option("maxFilesPerTrigger", "1")
            lines = stream.json(self.source.as_uri())
            with ha.spark.Output(leadership, self.out, QUERY, source="json") as output:

                def publish(frame: DataFrame, batch: int) -> None:
                    output(frame, batch)
                    if batch == fail_at:
                        raise RuntimeError("it dies before Spark commits the batch")

                writer = sums(lines).writeStream.queryName(QUERY).outputMode("update").foreachBatch(publish)
                query = writer.start()
                try:
                    query.processAllAvailable()
                except Exception:
                    if fail_at is None:
                        raise
                finally:
                    query.stop()

    def ha(self, *arguments: str) -> int:
        group, verb, *rest = arguments
        return exit_code([group, verb, self.job, QUERY, *rest, "--yes", "--files", self.root, "--zookeeper", ""])

    @property
    def newest(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for _, each in sorted(rows(self.out).items(), key=lambda pair: int(pair[0].removeprefix("batch="))):
            found |= {str(row["key"]): int(str(row["sum"])) for row in each}
        return found

    @property
    def expected(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number in range(self.fed):
            for each in range(4):
                key = f"k{(number + each) % 9}"
                found[key] = found.get(key, 0) + (1 << number)
        return found

    @property
    def ids(self) -> list[int]:
        return sorted(int(name.removeprefix("batch=")) for name in rows(self.out))


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(found: Inspection) -> Iterator[SparkSession]:
        with configured(spark, session_settings(found)):
            yield spark

    monkeypatch.setattr(stored_state, "session", opened)


@pytest.mark.usefixtures("shared")
def test_sums_go_on_with_other_partitions_and_back(
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    it = Job(spark, job, hdfs_uri, tmp_path)
    with configured(spark, {**ALWAYS, **FORMATS["rocksdb with ids"]}):
        it.feed(3)
        it.run()
        assert it.newest == it.expected
        assert it.ha("checkpoint", "rescale", "--partitions", "8", "--deep", "--json") == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["batch"], said["present"], said["partitions"], said["begun"]) == (2, 2, 8, False)
        (state,) = said["states"]
        assert (state["keys"], state["state"]) == (6, "default")
        assert it.ha("checkpoint", "rescale", "--partitions", "8") == 0
        assert "there is nothing to do" in capsys.readouterr().out

        it.feed(2)
        it.run()
        assert (it.newest, it.ids) == (it.expected, [0, 1, 2, 4, 5]), "batch 3 has repartitioned"

        it.feed(1)
        it.run(fail_at=6)  # published, and not committed
        assert it.ids[-1] == 6
        assert it.ha("checkpoint", "rescale", "--partitions", "3") == 2, "nothing is done before the user has seen that"
        assert "has begun batch 6 and not committed it" in capsys.readouterr().err
        assert it.ha("checkpoint", "rescale", "--partitions", "3", "--redo-begun") == 0
        assert "there are as many" in capsys.readouterr().out
        it.run()  # it does that batch again, as batch 7, and the output knows it
        assert (it.newest, it.ids) == (it.expected, [0, 1, 2, 4, 5, 6])
        it.feed(1)
        it.run()
        assert (it.newest, it.ids) == (it.expected, [0, 1, 2, 4, 5, 6, 7]), "numbers are lower by one than Spark's"

        assert it.ha("checkpoint", "rewind", "--undo") == 0
        assert it.ids[-1] == 6
        it.run()
        assert (it.newest, it.ids) == (it.expected, [0, 1, 2, 4, 5, 6, 7])


@pytest.mark.usefixtures("shared")
def test_every_variable_of_transform_with_state_and_its_timers(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    it = Run(spark, tmp_path, "visits", "rocksdb with ids", seed=0)
    with configured(spark, it.settings):
        it.go_on()
        it.go_on()
        asked = ["checkpoint", "rescale", it.job, "query", "--partitions", "3", "--deep", "--yes", "--json"]
        assert exit_code([*asked, "--files", it.root, "--zookeeper", ""]) == 0
        states = {each["state"]: each for each in json.loads(capsys.readouterr().out)["states"]}
        assert set(states) == {"sum", "newest", "times", "timers"}
        assert all(each["keys"] > 0 and each["hash"] for each in states.values())
        assert it.go_on() == 3
        it.go_on()
        everything, expected = tmp_path / "never", Counter[str]()
        everything.mkdir()
        stepwise(it, everything, tmp_path / "never-stopped", expected)
        assert it.rows == expected, "timers of keys that have moved have fired, too"
