"""Regions beside a poisoned one: ``python -m benchmarks.spark.regions --minutes 10``.

One program runs many declared queries in regions under ``ha run``, on real HDFS and ZooKeeper. Every batch of one query
is poisoned for so many minutes. The others must go on in the runs that they had, without a batch that is missing or
done twice; the poisoned region must end in FAILED after the restarts that it is allowed, and ``ha exceptions`` must
name the cause. Then the poison is taken away, ``ha restart`` starts the region again, and all sums must be exact.
"""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Any

import click

from benchmarks import report as reports
from benchmarks.context import Context, servers
from benchmarks.machine import this_machine
from benchmarks.result import Result, Target
from benchmarks.spark.failover import environment
from benchmarks.spark.many_queries import Plan
from benchmarks.spark.sidecars import NotSo
from ha.drill.sandbox_environment import Process
from ha.sandbox import Sandbox
from store.clock import now
from store.open import open_files

NAME = "spark_regions"
TITLE = "Many queries in regions, one of them poisoned: what the others lose"
JOB = "regions"

ATTEMPTS = 5
STRATEGY = {
    "HA_FAILED_REGION": "stay",
    "HA_RESTART_STRATEGY_TYPE": "fixed-delay",
    "HA_RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS": f"{ATTEMPTS}",
    "HA_RESTART_STRATEGY_FIXED_DELAY_DELAY": "5",
}
PATIENCE_S = 300.0
"""For steps that take a minute on an idle machine: forty queries start one after the other."""

LOOK_S = 1.0
CALL_S = 60.0
FEED_S = 1.0
"""Seconds between two input files, with one number each."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a query: its time, its number, and the numbers that it has added up."""

    at: float
    batch: int
    sum: int
    rows: int


@dataclass(frozen=True, slots=True)
class Found:
    """The job after the poison.

    Attributes:
        minutes: for which a query was poisoned.
        queries: of all regions.
        batches: of the other regions meanwhile.
        lost: batches of theirs that are missing in the order, or were done twice.
        moved: queries of the other regions that have another run, or restarts.
        median_gap: seconds between two batches of such a query, while all was well.
        longest_gap: the longest ones, before and after the poison.
        states: of the poisoned region's queries, each with its restarts.
        failed_after: seconds from the poison until the poisoned query was FAILED.
        causes: exceptions that name the poison, among those that ``ha exceptions`` keeps.
        leaders: that there were.
        wrong: queries whose sum is not that of the input, at the end.
    """

    minutes: float
    queries: int
    batches: int
    lost: int
    moved: int
    median_gap: float
    longest_gap: tuple[float, float]
    states: Mapping[str, int]
    failed_after: float
    causes: int
    leaders: int
    wrong: int


class Regions:
    """The running job, its input, and what its queries write down."""

    def __init__(self, sandbox: Sandbox, folder: Path, regions: int, queries: int, interval: float) -> None:
        """Start the job, without any input."""
        files = sandbox.environment()["HA_FILES"]
        root = files.rstrip("/").rpartition("/")[0]
        self.folder = folder
        for name in ("batches", "poison"):
            (folder / name).mkdir()
        place = f"{root}/{JOB}"
        self.plan = Plan(
            regions, queries, interval, f"{place}/in", f"{place}/out", f"{folder}/batches", f"{folder}/poison"
        )
        self.plan.write(folder / "plan.json")
        self.fed = 0
        self._files = open_files(f"{root}/")
        for path in (JOB, f"{JOB}/in"):
            self._do(path, lambda files, path: files.make_directory(path))
        self._environment = {**environment(sandbox), **STRATEGY, "PYSPARK_PYTHON": sys.executable}
        program = [sys.executable, "-m", "benchmarks.spark.many_queries", f"{folder}/plan.json"]
        command = [sys.executable, "-m", "ha.cli", "run", JOB, "--contender", "only", "--", *program]
        self.sidecar = Process("only", command, self._environment, folder)

    def _do(self, path: str, operation: Callable[[Any, str], object]) -> None:
        self._files.call(path, lambda files: operation(files, path), CALL_S)

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Put a number into the input again and again."""
        over = Event()

        def feed() -> None:
            while not over.wait(FEED_S):
                self._do(
                    f"{JOB}/in/{self.fed:05d}.txt", lambda files, path: files.write(path, f"{self.fed}\n".encode())
                )
                self.fed += 1

        feeder = Thread(target=feed, name="feeder")
        feeder.start()
        try:
            yield
        finally:
            over.set()
            feeder.join()

    def asked(self, *arguments: str) -> Any:
        """Return what a command prints as JSON; one that comes too late on a busy machine is asked again."""
        command = [sys.executable, "-m", "ha.cli", *arguments, "--json"]
        end = now() + PATIENCE_S
        while True:
            done = subprocess.run(
                command, env=self._environment, cwd=self.folder, capture_output=True, text=True, check=False
            )
            if not done.returncode:
                return json.loads(done.stdout)
            if now() > end:
                raise NotSo(f"{' '.join(arguments)} has ended with {done.returncode}: {done.stderr[-1000:]}")

    def queries(self) -> dict[str, dict[str, Any]]:
        """Return the queries as ``ha queries`` shows them, by name."""
        return {each["query"]: each for each in self.asked("queries", JOB)["queries"]}

    def batches(self, query: str) -> list[Batch]:
        """Return the batches of a query in the order in which they ended."""
        path = Path(self.plan.batches, query)
        lines = path.read_text(encoding="ascii").splitlines(keepends=True) if path.exists() else []
        return [Batch(**json.loads(line)) for line in lines if line.endswith("\n")]

    def wait(self, what: str, reached: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = now() + PATIENCE_S
        while not reached():
            if now() > end or not self.sidecar.running:
                raise NotSo(f"There was no sign of {what}: {self.sidecar.log()[-2000:]}")
            Event().wait(LOOK_S)

    def end(self) -> None:
        """Leave nothing running."""
        self.sidecar.end()
        self._files.close()


def run(job: Regions, minutes: float, say: Callable[[str], None]) -> Found:
    """Poison one query for so many minutes, and judge."""
    poisoned = job.plan.names(0)
    others = [name for region in range(1, job.plan.regions) for name in job.plan.names(region)]
    victim = poisoned[-1]
    with job.feeding():
        job.wait("two batches of each query", lambda: all(len(job.batches(each)) > 1 for each in [*others, *poisoned]))
        say(f"{len(others) + len(poisoned)} queries in {job.plan.regions} regions run; all is well for a minute.")
        calm = now()
        Event().wait(60.0)
        before, began = job.queries(), now()
        say(f"{victim} is poisoned for {minutes:g} minutes.")
        Path(job.plan.poison, victim).touch()
        job.wait(f"{victim} to be FAILED", lambda: job.queries()[victim]["state"] == "FAILED")
        failed_after = now() - began
        say(f"{victim} is FAILED after {failed_after:.0f} s.")
        Event().wait(max(0.0, began + 60 * minutes - now()))
        ended, after = now(), job.queries()
        exceptions, leaders = job.asked("exceptions", JOB), len(job.asked("history", JOB))
        done = {each: [batch for batch in job.batches(each) if began < batch.at <= ended] for each in others}
        say("The poison is taken away, and the query is restarted.")
        Path(job.plan.poison, victim).unlink()
        job.asked("restart", JOB, "--query", victim, "--timeout", f"{PATIENCE_S:g}")
    expected = sum(range(job.fed))
    everybody = [*others, *poisoned]
    job.wait("all sums", lambda: all(sum_of(job.batches(each)) >= expected for each in everybody))
    well = {each: gaps([batch for batch in job.batches(each) if calm < batch.at <= began]) for each in others}
    same = [(before[each]["run_id"], 0) == (after[each]["run_id"], after[each]["restarts"] or 0) for each in others]
    return Found(
        minutes=minutes,
        queries=len(everybody),
        batches=sum(map(len, done.values())),
        lost=sum(out_of_order(each) for each in done.values()),
        moved=same.count(False),
        median_gap=median(gap for each in well.values() for gap in each),
        longest_gap=(
            max(gap for each in well.values() for gap in each),
            max(gap for each in done.values() for gap in gaps(each)),
        ),
        states={f"{each}: {after[each]['state']}": after[each]["restarts"] or 0 for each in poisoned},
        failed_after=failed_after,
        causes=sum(each["query"] == victim and f"poison in {victim}" in each["message"] for each in exceptions),
        leaders=leaders,
        wrong=sum(sum_of(job.batches(each)) != expected for each in everybody),
    )


def gaps(batches: list[Batch]) -> list[float]:
    """Return the seconds between batches."""
    return [second.at - first.at for first, second in pairwise(batches)]


def out_of_order(batches: list[Batch]) -> int:
    """Return how many batches do not follow the one before."""
    return sum(second.batch != first.batch + 1 for first, second in pairwise(batches))


def sum_of(batches: list[Batch]) -> int:
    """Return what the batches add up to; one that was repeated counts once, as it was done last."""
    return sum({each.batch: each.sum for each in batches}.values())


def summarise(found: Found) -> Result:
    """Return the result."""
    all_failed = all(each.endswith("FAILED") for each in found.states)
    restarts = sorted(set(found.states.values()))
    return Result(
        name=NAME,
        title=TITLE,
        columns=("what", "found"),
        rows=(
            ("queries, in all regions", found.queries),
            ("minutes with the poison", found.minutes),
            ("batches of the other regions meanwhile", found.batches),
            ("their median distance before (s)", found.median_gap),
            ("their longest distance before (s)", found.longest_gap[0]),
            ("their longest distance meanwhile (s)", found.longest_gap[1]),
            ("poisoned query FAILED after (s)", found.failed_after),
            ("restarts of the poisoned region", max(restarts)),
        ),
        targets=(
            Target("batches of other regions lost or repeated", 0, found.lost, "", True),
            Target("queries of other regions with another run", 0, found.moved, "", True),
            Target("the poisoned region is FAILED, all of it", 1, int(all_failed), "", at_most=False),
            Target(
                f"restarts of it, off the {ATTEMPTS} allowed",
                0,
                max(abs(each - ATTEMPTS) for each in restarts),
                "",
                True,
            ),
            Target("exceptions that name the root cause", ATTEMPTS + 1, found.causes, "", at_most=False),
            Target("leaders", 1, found.leaders, "", True),
            Target("queries with a wrong sum at the end", 0, found.wrong, "", True),
        ),
        notes=(
            "One driver under one sidecar. In each region one query publishes what the others read.",
            f"The region may restart {ATTEMPTS} times, 5 s after each failure; `failed_region` is `stay`.",
        ),
        pictures=(),
        raw=asdict(found),
    )


@click.command()
@click.option("--minutes", type=click.FloatRange(0.5), default=10.0, show_default=True)
@click.option("--regions", type=click.IntRange(2), default=4, show_default=True)
@click.option("--queries", type=click.IntRange(2), default=10, show_default=True, help="In each region.")
@click.option("--interval", type=float, default=10.0, show_default=True, help="Seconds between batches of a query.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build", "benchmarks"),
    show_default=True,
    help="Write the report to this directory; other benchmarks in it stay.",
)
def main(minutes: float, regions: int, queries: int, interval: float, report: Path) -> None:
    """Poison one of many queries. Exit code 0: the others lost nothing, and it FAILED as configured; 1: not so."""
    folder = (report / "work" / NAME / f"{time.time_ns():x}").absolute()
    folder.mkdir(parents=True)
    began, when = now(), time.strftime("%Y-%m-%d %H:%M %Z")

    def say(sentence: str) -> None:
        click.echo(f"{now() - began:6.0f} s  {sentence}", err=True)

    with servers(Context(quick=False, rounds=None, say=say, folder=folder)) as sandbox:
        job = Regions(sandbox, folder, regions, queries, interval)
        try:
            result = summarise(run(job, minutes, say))
        finally:
            job.end()
    command = shlex.join(["python", "-m", "benchmarks.spark.regions", *sys.argv[1:]])
    reports.write(report, [reports.Entry(when, command, this_machine(), result)], merge=True)
    for target in result.targets:
        say(f"{target.sentence}: {target.measured:g}")
    say(f"The report is {report / reports.MARKDOWN}.")
    sys.exit(0 if all(target.met for target in result.targets) else 1)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.spark.regions")
