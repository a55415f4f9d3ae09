"""Restarts from every batch that the product calls restorable, and from checkpoints with a file less.

python -m tests.system.checkpoints.restarts                       all programs and formats, in one session
python -m tests.system.checkpoints.restarts --program pairs --format hdfs --batches 6
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import Condition, Verified, judged
from ha.spark.checkpoint_tools.exporting import export_checkpoint
from ha.spark.queries.query_failures import failure
from ha.spark.session.spark_session import configured
from ha.spark.stored.stored_state import QUIET
from leader.layout import tree
from leader.layout.names import SPARK
from store.local import LocalFiles
from store.open import open_files
from tests.system.spark.test_closures import FORMATS, STATE

try:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
except ImportError:  # before Spark 4

    class StatefulProcessor:  # type: ignore[no-redef]
        """Nothing can be kept by it."""


JOB = "restarts"
SCHEMA = "key string, value long, at timestamp"
SETTINGS = {
    "spark.sql.streaming.minBatchesToRetain": "6",
    "spark.sql.streaming.fileSource.log.compactInterval": "5",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "1ms",
    "spark.sql.session.timeZone": "UTC",
    f"{STATE}.minDeltasForSnapshot": "3",
    f"{STATE}.maintenanceInterval": "300ms",
    "spark.sql.shuffle.partitions": "2",
}

Rows = dict[int, list[str]]
"""What each batch has put out. After a restart the same rows may be in another batch: Spark plans them anew."""

HIDDEN = ".last.json"
"""The newest file of input, which comes when all others are done: it brings out what waits for a watermark."""


def filtered(rows: DataFrame) -> DataFrame:
    return rows.where("value % 3 > 0").withColumn("twice", fn.col("value") * 2)


def counts(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(fn.count("*").alias("n"), fn.sum("value").alias("sum"))


def windows(rows: DataFrame) -> DataFrame:
    late = rows.withWatermark("at", "10 seconds")
    return late.groupBy(fn.window("at", "8 seconds"), "key").agg(fn.sum("value").alias("sum"))


def pairs(rows: DataFrame) -> DataFrame:
    """Join a stream with itself; what finds no partner comes out once the watermark has passed."""
    left, right = (rows.withWatermark("at", "6 seconds").alias(each) for each in ("l", "r"))
    near = fn.expr("l.key = r.key AND l.value < r.value AND r.at BETWEEN l.at AND l.at + interval 4 seconds")
    return left.join(right, near, "leftOuter")


def firsts(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "30 seconds").dropDuplicatesWithinWatermark(["key", "value"])


def totals(rows: DataFrame) -> DataFrame:
    """Keep a total of each key in Python, by ``applyInPandasWithState``."""
    import pandas as pd  # noqa: PLC0415

    def add(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        total = (state.get[0] if state.exists else 0) + sum(int(each["value"].sum()) for each in frames)
        state.update((total,))
        yield pd.DataFrame({"key": [key[0]], "total": [total]})

    said = "key string, total long"
    return rows.groupBy("key").applyInPandasWithState(add, said, "total long", "update", "NoTimeout")


class Visits(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self._times = handle.getValueState("times", "n long")
        self._best = handle.getMapState("best", "of string", "value long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        del timerValues
        values = [row["value"] for row in rows]
        n = (self._times.get()[0] if self._times.exists() else 0) + len(values)
        name = ("best",)
        best = max(values + ([self._best.getValue(name)[0]] if self._best.containsKey(name) else []))
        self._times.update((n,))
        self._best.updateValue(name, (best,))
        yield Row(key=key[0], n=n, best=best)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def visits(rows: DataFrame) -> DataFrame:
    """Keep two variables of each key in Python, by ``transformWithState``."""
    said = "key string, n long, best long"
    return rows.groupBy("key").transformWithState(Visits(), said, "update", "None")


PROGRAMS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "filtered": (filtered, "append"),
    "counts": (counts, "update"),
    "windows": (windows, "append"),
    "pairs": (pairs, "append"),
    "firsts": (firsts, "append"),
    "totals": (totals, "update"),
    "visits": (visits, "update"),
}
"""By name, each program and its output mode."""

OURS = (Condition.RESTORABLE, Condition.REBUILT)


def kinds(batch: int) -> dict[str, str]:
    """Return patterns of files, one of which is taken away; none of the commit, without which it is another batch."""
    return {
        "identity": r"metadata",
        "offsets": rf"offsets/{batch}",
        "offsets before": rf"offsets/{batch - 1}",
        "source log": r"sources/.+",
        "operator metadata": r"state/\d+/_metadata/(?:metadata|v2/\d+)",
        "schema": r"state/.+/(?:_metadata/schema|_stateSchema/.+)",
        "changes": r"state/.+\.(?:delta|changelog)",
        "snapshot": r"state/.+\.(?:snapshot|zip)",
        "table": r"state/.+\.sst",
    }


def runs_on(program: str, kind: str) -> bool:
    """Whether Spark can run a program with that format of state; without state one of them is enough."""
    return not (program == "visits" and kind == "hdfs") and not (program == "filtered" and kind != "hdfs")


@dataclass
class Counts:
    """What came of the restarts of one program in one format.

    Attributes:
        restorable: batches that were called restorable, and restarted from.
        rebuilt: those of them of which a file was rebuilt.
        refused: batches that were called damaged, once a file of their changes was gone.
        holes: by the kind of the file that was taken away, what the product has said, and what Spark has done.
        wrong: whatever the product has said that Spark has not done.
    """

    restorable: int = 0
    rebuilt: int = 0
    refused: int = 0
    holes: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class Restarts:
    """One program in one format: a job with a run to go back to, and one that never stops."""

    def __init__(self, spark: SparkSession, home: Path, program: str, batches: int) -> None:
        self._spark, self._home, self._query = spark, home, program
        self._program, self._mode = PROGRAMS[program]
        tree.create(LocalFiles(home / "ha"), JOB)
        (leader,) = (home / "ha" / JOB).iterdir()
        self.whole = leader / SPARK / program
        self.counts, self._places = Counts(), 0
        feed(home / "in", batches)
        self._run(self.whole, with_last=False)
        self._expected = self._run(home / "never-stopped")

    def retained(self, place: Path | None = None) -> list[Verified]:
        place = place or self.whole
        with open_files(place.parent.as_uri()) as files:
            return judged(CheckpointReader(Tree(files, place.name)))

    def restart_from_all(self) -> None:
        for each in self.retained():
            if each.condition not in OURS:
                continue
            with self._exported(each.batch) as place:
                self.counts.restorable += 1
                self.counts.rebuilt += each.condition is Condition.REBUILT
                if said := self.differs(place, each.batch):
                    self.counts.wrong.append(f"batch {each.batch} is {each.condition}, and Spark {said}")

    def restart_from_none(self) -> None:
        """Take a file of changes away, and try each batch that is not restorable without it, with all that is left."""
        changes = sorted(
            (int(found[1]), path)
            for path in self.whole.rglob("*")
            if (found := re.fullmatch(r"(\d+)(?:_.+)?\.(?:delta|changelog)", path.name))
        )
        if changes:
            changes[len(changes) // 2][1].unlink()
        for each in self.retained():
            if each.condition in OURS:
                continue
            place = self._place()
            shutil.copytree(self.whole, place)
            for path in (path for log in ("offsets", "commits") for path in (place / log).glob("[0-9]*")):
                if int(path.name) > each.batch:
                    path.unlink()
            self.counts.refused += 1
            if not (said := self.differs(place, each.batch)).startswith("fails"):
                self.counts.wrong.append(f"batch {each.batch} lacks {each.missing}, and Spark {said or 'goes on'}")
            shutil.rmtree(place, ignore_errors=True)

    def make_holes(self) -> None:
        """Take one file of each kind out of what a restart needs, and compare what the product says with Spark."""
        kept = [each.batch for each in self.retained() if each.condition is Condition.RESTORABLE]
        batch = kept[len(kept) // 2]
        for kind, pattern in kinds(batch).items():
            with self._exported(batch) as place:
                known = [str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()]
                if not (found := sorted(each for each in known if re.fullmatch(pattern, each))):
                    continue
                folder, _, name = found[-1].rpartition("/")
                for path in (name, f"{name}.crc", f".{name}.crc", f".{name}.crc.crc"):
                    (place / folder / path).unlink(missing_ok=True)
                (judgement,) = self.retained(place)
                said = self.differs(place, batch)
                self.counts.holes[kind] = f"{judgement.condition}: Spark {said or 'goes on with the same rows'}"
                if bool(said) is (judgement.condition is Condition.RESTORABLE):
                    self.counts.wrong.append(f"without {found[-1]} it is {self.counts.holes[kind]}")

    @contextmanager
    def _exported(self, batch: int) -> Iterator[Path]:
        """Do what `ha checkpoint export` does; the copy is gone after the block."""
        place = self._place()
        export_checkpoint(
            JOB, self._query, place.as_uri(), batch=batch, files=(self._home / "ha").as_uri(), zookeeper=""
        )
        yield place
        shutil.rmtree(place, ignore_errors=True)

    def _place(self) -> Path:
        """Return a path that was not there before: Spark's maintenance may write to one for a while after its query."""
        self._places += 1
        return self._home / f"copy-{self._places}"

    def differs(self, place: Path, batch: int) -> str:
        """Go on after a batch; return what is wrong with it: an error, or other rows than without a stop."""
        expected = Counter(row for number, rows in self._expected.items() if number > batch for row in rows)
        try:
            found = Counter(row for rows in self._run(place).values() for row in rows)
        except Exception as error:  # noqa: BLE001  # whatever it is, the query does not go on
            return f"fails ({failure('', str(error)).error[:160]})"
        lost, more = (expected - found).total(), (found - expected).total()
        return f"goes on with {lost} rows too few and {more} too many" if lost or more else ""

    def _run(self, checkpoint: Path, *, with_last: bool = True) -> Rows:
        """Run the program until it has done all input, and then the newest file as well."""
        found: Rows = {}

        def keep(frame: DataFrame, batch: int) -> None:
            found[batch] = [str(each) for each in frame.collect()]

        source = self._home / "in"
        stream = self._spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
        writer = self._program(stream.json(source.as_uri())).writeStream.foreachBatch(keep)
        query = writer.outputMode(self._mode).option("checkpointLocation", checkpoint.as_uri()).start()
        try:
            query.processAllAvailable()
            if with_last:
                (source / HIDDEN).rename(source / HIDDEN[1:])
                query.processAllAvailable()
        finally:
            query.stop()
            if (source / HIDDEN[1:]).exists():
                (source / HIDDEN[1:]).rename(source / HIDDEN)
        return found


def feed(source: Path, batches: int) -> None:
    """Write a file for each batch, and one that comes later; Spark takes them by age."""
    source.mkdir()
    for number in range(batches + 1):
        file = source / (f"{number:03}.json" if number < batches else HIDDEN)
        lines = [
            {
                "key": f"k{(number * 3 + each) % 7}",
                "value": (number * 5 + each * each) % 11,
                "at": f"2026-01-01T00:{number * 3 // 60:02}:{(number * 3 + each % 3) % 60:02}Z",
            }
            for each in range(8)
        ]
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        os.utime(file, (1_000_000_000 + number,) * 2)


def tried(spark: SparkSession, home: Path, program: str, kind: str, batches: int, *, holes: bool) -> Counts:
    with configured(spark, {**SETTINGS, **FORMATS[kind]}):
        restarts = Restarts(spark, home, program, batches)
        restarts.restart_from_all()
        if holes:
            restarts.make_holes()
        restarts.restart_from_none()
    return restarts.counts


@click.command()
@click.option("--program", "programs", multiple=True, type=click.Choice(list(PROGRAMS)), default=list(PROGRAMS))
@click.option("--format", "kinds", multiple=True, type=click.Choice(list(FORMATS)), default=list(FORMATS))
@click.option("--batches", default=12, show_default=True, help="Files of input, each of which is a batch.")
@click.option("--holes/--no-holes", default=True, show_default=True, help="Also take files away.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("build/soak-restarts.json"))
def main(programs: tuple[str, ...], kinds: tuple[str, ...], batches: int, *, holes: bool, output: Path) -> None:
    """Count restarts, and answers that are not true; exit code 1 if there is one of these."""
    said: dict[str, dict[str, Any]] = {}
    os.environ["HA_CONFIG"] = os.devnull
    with tempfile.TemporaryDirectory(prefix="ha-restarts-", ignore_cleanup_errors=True) as folder:
        spark = SparkSession.builder.master("local[2]").config(map={**QUIET, "spark.log.level": "OFF"}).getOrCreate()
        for program, kind in ((program, kind) for program in programs for kind in kinds if runs_on(program, kind)):
            began, home = time.monotonic(), Path(folder) / f"{program}-{kind}".replace(" ", "-")
            home.mkdir()
            counted = tried(spark, home, program, kind, batches, holes=holes)
            said[f"{program}, {kind}"] = {**asdict(counted), "seconds": round(time.monotonic() - began)}
            click.echo(f"{program}, {kind}: {json.dumps(said[f'{program}, {kind}'])}")
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
            shutil.rmtree(home, ignore_errors=True)
        spark.stop()
    sys.exit(any(each["wrong"] for each in said.values()))


if __name__ == "__main__":
    main()
