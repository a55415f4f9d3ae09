"""``ha checkpoint rescale`` under kill -9 at drawn points, and Spark's own repartition in place beside it.

python -m tests.system.checkpoints.rescaling --kills 20 --beside 5 --program sums --partitions 8 --partitions 3
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import ha.spark
from ha.spark.stored.stored_state import QUIET
from leader.layout.names import REWINDING
from tests.patience import DRIVER_S
from tests.system.spark.helpers import begin_another_program
from tests.system.spark.test_closures import FORMATS, STATE

QUERY = "query"
SCHEMA = "key string, value long, at timestamp"
KEYS = 40

IN_PLACE = """
import json, sys
from pyspark.sql import SparkSession
uri, partitions, settings = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config(map=json.loads(settings)).getOrCreate()
spark._streamingCheckpointManager.repartition(uri, int(partitions))
spark.stop()
"""


def sums(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "10 seconds").groupBy("key").agg(fn.sum("value").alias("sum"))


def pairs(rows: DataFrame) -> DataFrame:
    left, right = (rows.withWatermark("at", "10 seconds").alias(each) for each in ("l", "r"))
    return left.join(right, fn.expr("l.key = r.key AND l.at <= r.at AND r.at <= l.at + interval 5 seconds"))


def firsts(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicates(["key", "value"])


class Visits(StatefulProcessor):
    """Every kind of variable of transformWithState, and timers: what is in all of them comes out."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.sum = handle.getValueState("sum", "value long")
        self.newest = handle.getListState("newest", "value long")
        self.times = handle.getMapState("times", "value long", "times long")

    def handleInputRows(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        before = self.sum.get()
        found = sorted((row["at"], row["value"]) for row in rows)
        values = [value for _, value in found]
        self.sum.update(((before[0] if before else 0) + sum(values),))
        self.newest.put([(each,) for each in [*(value for (value,) in self.newest.get()), *values][-5:]])
        for each in values:
            seen = self.times.getValue((each,))
            self.times.updateValue((each,), ((seen[0] if seen else 0) + 1,))
        self.handle.registerTimer(int(found[-1][0].timestamp() * 1000) + 150_000)
        del timerValues
        yield self.row(key, "input")

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        del timerValues
        yield self.row(key, f"timer {expiredTimerInfo.getExpiryTimeInMs()}")

    def row(self, key: Any, why: str) -> Row:
        newest, times = [value for (value,) in self.newest.get()], sorted(map(str, self.times.iterator()))
        total = self.sum.get()
        return Row(key=key[0], why=why, all=f"{total and total[0]} {newest} {times}")

    def close(self) -> None:
        pass


def visits(rows: DataFrame) -> DataFrame:
    grouped = rows.withWatermark("at", "10 seconds").groupBy("key")
    return grouped.transformWithState(Visits(), "key string, why string, all string", "update", "EventTime")


PROGRAMS = {
    "sums": (sums, "update"),
    "pairs": (pairs, "append"),
    "firsts": (firsts, "append"),
    "visits": (visits, "update"),
}


@dataclass
class Counts:
    """What came of the kills of one program.

    Attributes:
        kills: how many commands were killed.
        old: checkpoints that were as before.
        new: checkpoints that were rescaled.
        wrecks: checkpoints with which no query started.
        rescaled: commands that were not killed and have compared all pairs by hashes.
        wrong: rows that are too few or too many, compared with a run that never stopped.
        points: what was there at each kill.
    """

    kills: int = 0
    old: int = 0
    new: int = 0
    wrecks: int = 0
    rescaled: int = 0
    wrong: int = 0
    points: dict[str, int] = field(default_factory=dict)


class Run:
    """One program in one format, in a job on this host, whose input grows by a file for each batch."""

    def __init__(self, spark: SparkSession, home: Path, program: str, kind: str, seed: int) -> None:
        self.spark, self.home, self.job = spark, home, program
        self.program, self.mode = PROGRAMS[program]
        self.settings = {
            **FORMATS[kind],
            f"{STATE}.minDeltasForSnapshot": "3",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
        }
        self.source, self.root = home / "in", (home / "jobs").as_uri()
        self.source.mkdir(parents=True)
        self.random = random.Random(seed)  # noqa: S311
        self.fed = 0
        self.rows: Counter[str] = Counter()

    def feed(self) -> None:
        lines = [
            {
                "key": f"k{self.random.randrange(KEYS)}",
                "value": self.random.randrange(9),
                "at": f"2026-01-01T{self.fed // 60:02}:{self.fed % 60:02}:00Z",
            }
            for _ in range(30)
        ]
        hidden = self.source / f".{self.fed}"
        hidden.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        os.utime(hidden, (1_000_000_000 + self.fed,) * 2)
        hidden.rename(self.source / f"{self.fed:04}.json")
        self.fed += 1

    def process(self, checkpoint: str, rows: Counter[str], source: Path | None = None, *, named: bool = True) -> None:
        def keep(frame: DataFrame, _: int) -> None:
            rows.update(str(each) for each in frame.collect())

        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
        writer = self.program(stream.json((source or self.source).as_uri())).writeStream.foreachBatch(keep)
        writer = writer.outputMode(self.mode).option("checkpointLocation", checkpoint)
        query = (writer.queryName(QUERY) if named else writer).start()
        try:
            query.processAllAvailable()
        finally:
            query.stop()

    def go_on(self) -> int:
        """Lead the job for a batch more; return how many partitions its state has."""
        self.feed()
        with ha.spark.lead(self.job, self.spark, timeout=60.0, files=self.root, zookeeper="") as leadership:
            self.process(ha.spark.checkpoint_location(leadership, QUERY), self.rows)
        return self.partitions()

    def checkpoint(self) -> Path:
        """Return the query's in the newest leader directory: Spark may have made an older one once more."""
        return max(self.home.glob(f"jobs/{self.job}/0*/spark/{QUERY}"))

    def partitions(self) -> int:
        logs = self.checkpoint() / "offsets"
        newest = max(int(each.name) for each in logs.iterdir() if each.name.isdecimal())
        said = (logs / f"{newest}").read_text(encoding="utf-8").split("\n")[1]
        return int(json.loads(said)["conf"]["spark.sql.shuffle.partitions"])

    @contextmanager
    def rescaling(self, partitions: int) -> Iterator["subprocess.Popen[bytes]"]:
        verb = [
            sys.executable, "-m", "ha.cli", "checkpoint", "rescale", self.job, QUERY, "--partitions", f"{partitions}",
        ]  # fmt: skip
        flags = ["--deep", "--yes", "--json", "--timeout", "60", "--files", self.root, "--zookeeper", ""]
        with started([*verb, *flags], self.home / "rescale.log") as process:
            yield process

    def points(self) -> dict[str, Callable[[], bool]]:
        """What the next command has come to, told by the names that it has made in a leader directory of its own."""
        home = self.home / "jobs" / self.job
        newest = max(int(each.name) for each in (self.checkpoint() / "commits").iterdir() if each.name.isdecimal())
        copy, known = f"{REWINDING}/{QUERY}/*/tree", {each.name for each in home.iterdir()}

        def there(pattern: str) -> Callable[[], bool]:
            return lambda: any(any(each.glob(pattern)) for each in home.glob("0*") if each.name not in known)

        return {
            "copying": there(f"{REWINDING}/{QUERY}"),
            "copied": there(f"{copy}/commits/{newest}"),
            "repartitioning": there(f"{copy}/offsets/{newest + 1}"),
            "repartitioned": there(f"{copy}/commits/{newest + 1}"),
            "decided": there(f"{REWINDING}/{QUERY}/decided"),
        }


@contextmanager
def started(command: list[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command in a session of its own; it ends with the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            kill(process)


def kill(process: "subprocess.Popen[bytes]", *, group: bool = True) -> None:
    """Kill -9 a command, and its JVM with it, or have the JVM notice that by itself."""
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
    process.wait(DRIVER_S)


def reached(process: "subprocess.Popen[bytes]", seen: Callable[[], bool]) -> bool:
    """Wait for something that a command makes; returns whether it has, before it ended."""
    end = time.monotonic() + DRIVER_S
    while time.monotonic() < end:
        if seen():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    raise TimeoutError("The command hangs.")


def under_kills(run: Run, kills: int, numbers: list[int], told: Callable[[str], None]) -> Counts:
    """Rescale to one number after the other, and kill most of the commands; the query goes on after each."""
    counts = Counts()
    for _ in range(3):
        run.go_on()
    turn = 0
    while counts.kills < kills:
        before = run.partitions()
        wanted = next(each for each in numbers[turn % len(numbers) :] + numbers if each != before)
        turn += 1
        point = run.random.choice([*run.points(), "the end"])
        points = run.points()
        with run.rescaling(wanted) as process:
            if point != "the end" and reached(process, points[point]):
                time.sleep(run.random.random() * (0.3 if point == "decided" else 1.0))
            killed = point != "the end" and process.poll() is None
            if killed:
                kill(process, group=bool(counts.kills % 2))
                counts.kills += 1
                counts.points[point] = counts.points.get(point, 0) + 1
            elif process.wait(DRIVER_S):
                raise RuntimeError((run.home / "rescale.log").read_text(encoding="utf-8")[-3000:])
            else:
                counts.rescaled += 1
        try:
            after = run.go_on()
        except Exception as error:  # noqa: BLE001  # whatever it is, the query has not started
            counts.wrecks += 1
            told(f"WRECK: {error}")
            return counts
        counts.old += killed and after == before
        counts.new += killed and after == wanted
        told(f"{point}: {before} -> {wanted} {'killed' if killed else 'done'}, has {after}")
    expected: Counter[str] = Counter()
    everything, never = run.home / "never", run.home / "never-stopped"
    everything.mkdir()
    stepwise(run, everything, never, expected)
    counts.wrong = ((expected - run.rows) + (run.rows - expected)).total()
    return counts


def stepwise(run: Run, place: Path, checkpoint: Path, rows: Counter[str]) -> None:
    """Run the program over the same files, one after the other, in one query that never stops, and is not led."""
    begin_another_program()

    def keep(frame: DataFrame, _: int) -> None:
        rows.update(str(each) for each in frame.collect())

    stream = run.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1").json(place.as_uri())
    writer = run.program(stream).writeStream.foreachBatch(keep).outputMode(run.mode)
    query = writer.option("checkpointLocation", checkpoint.as_uri()).start()
    for each in sorted(run.source.glob("[0-9]*.json")):
        shutil.copy2(each, place / f".{each.name}")
        (place / f".{each.name}").rename(place / each.name)
        query.processAllAvailable()
    query.stop()


def in_place(run: Run, kills: int, partitions: int, told: Callable[[str], None]) -> Counts:
    """Kill Spark's own call in place, of a copy each time, and start the query from what is there."""
    counts = Counts()
    whole = run.checkpoint()
    newest = max(int(each.name) for each in (whole / "commits").iterdir() if each.name.isdecimal())
    settings = json.dumps({**QUIET, **run.settings})
    for number in range(kills):
        place = run.home / f"in-place-{number}"
        shutil.copytree(whole, place)
        point = run.random.choice(["repartitioning", "repartitioned"])
        seen = place / ("offsets" if point == "repartitioning" else "commits") / f"{newest + 1}"
        command = [sys.executable, "-c", IN_PLACE, place.as_uri(), f"{partitions}", settings]
        with started(command, run.home / "in-place.log") as process:
            if not reached(process, seen.exists):
                raise RuntimeError((run.home / "in-place.log").read_text(encoding="utf-8")[-3000:])
            time.sleep(run.random.random() * 0.3)
        counts.kills += 1
        counts.points[point] = counts.points.get(point, 0) + 1
        run.feed()
        try:
            run.process(place.as_uri(), Counter(), named=False)
        except Exception as error:  # noqa: BLE001  # whatever it is, the query has not started
            counts.wrecks += 1
            told(f"in place, {point}: no query starts ({str(error).splitlines()[0][:100]})")
        else:
            told(f"in place, {point}: the query starts")
    return counts


@click.command()
@click.option("--kills", default=10, show_default=True, help="Commands that are killed, of each program.")
@click.option("--beside", default=3, show_default=True, help="Of Spark's own calls in place, of each program.")
@click.option("--program", "programs", multiple=True, type=click.Choice(sorted(PROGRAMS)), default=sorted(PROGRAMS))
@click.option("--format", "kind", type=click.Choice(["rocksdb", "rocksdb with ids"]), default="rocksdb with ids")
@click.option("--partitions", "numbers", multiple=True, type=int, default=(8, 3, 2), help="In turn.  [default: 8 3 2]")
@click.option("--seed", default=0, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=Path("build/soak-rescaling.json"))
def main(
    kills: int, beside: int, programs: tuple[str, ...], kind: str, numbers: tuple[int, ...], seed: int, output: Path
) -> None:
    """Count checkpoints that do not start, and rows that are wrong; exit code 1 if there is any."""
    said = {}
    with tempfile.TemporaryDirectory(prefix="ha-rescaling-") as folder:
        os.environ["HA_CONFIG"] = os.devnull
        spark = SparkSession.builder.master("local[2]").config(map={**QUIET}).getOrCreate()
        for program in programs:
            run = Run(spark, Path(folder) / program, program, kind, seed)
            for name, value in run.settings.items():
                spark.conf.set(name, value)
            began = time.monotonic()
            ours = under_kills(run, kills, list(numbers), click.echo)
            own = in_place(run, beside, 1 + run.partitions(), click.echo)
            seconds = {"seconds": round(time.monotonic() - began)}
            said[program] = {"ha checkpoint rescale": asdict(ours), "in place": asdict(own), "took": seconds}
            click.echo(json.dumps(said[program]))
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps({"format": kind, **said}, indent=2) + "\n", encoding="utf-8")
        spark.stop()
    sys.exit(
        any(each["ha checkpoint rescale"]["wrecks"] or each["ha checkpoint rescale"]["wrong"] for each in said.values())
    )


if __name__ == "__main__":
    main()
