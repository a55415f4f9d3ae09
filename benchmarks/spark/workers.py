"""Benchmark of Spark's Python workers: 200 real ones ask for the leader while one leader after the other is killed."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any

from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.figures import percentile
from benchmarks.programs import await_answer, client, ha_program, program
from benchmarks.result import Result, at_least, at_most
from ha.history.events import Published, load
from ha.sandbox.polling import until
from leader.lookup.answers import Source

TITLE = "200 Python workers through a failover"

JOB = "workers"
WORKERS, QUICK_WORKERS = 200, 20
AGENT, ALONE = "an agent on the host", "no agent"
WITHIN = 1.0

COLUMNS = (
    *("with", "workers", "failovers", "calls", "errors", "late", "median worker, s", "last worker, s"),
    *("last worker of the worst failover, s", "slowest call, s"),
)

READY_S = 300.0  # Seconds until all workers ask: two cores start about four of them in a second
PUBLISHED_S = 60.0  # Longest time of a takeover in seconds
DOTS = 400  # Most dots in a row of the picture
SETTLED_S = 8.0
"""Seconds after which a new standby has settled: its session is attested, and it watches the leader's process."""

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Failover:
    """One failover, as all workers saw it."""

    epoch: int  # of the new leader
    # seconds from the publication until each worker was first told of it, ascending; infinite if it was not
    after: list[float]
    strangers: int  # number of workers that were told of another address under that epoch


@dataclass(frozen=True, slots=True)
class Run:
    """All failovers of one run, and the workers' reports of all their calls."""

    failovers: list[Failover]  # in order
    workers: int  # number of processes that asked
    calls: int  # number of all calls
    failed: int  # number of failed calls
    back: int  # number of calls that returned an epoch below one that the same worker had seen
    slowest: float  # duration of the longest call in seconds
    errors: list[str]  # a selection of the errors


def run(context: Context) -> Result:
    workers = QUICK_WORKERS if context.quick else WORKERS
    with servers(context) as sandbox:
        found = sandbox.environment()
        settings = {"files": found["HA_FILES"], "zookeeper": found["HA_ZOOKEEPER"]}
        return summarise({name: measure(context, settings, workers, name) for name in (AGENT, ALONE)}, workers)


def measure(context: Context, settings: Mapping[str, str], workers: int, name: str) -> Run:
    """Kill one leader after the other while the workers ask."""
    folder = context.folder / name.replace(" ", "-")
    folder.mkdir()
    rounds, job = context.repeats(), f"{JOB}-{'agent' if name == AGENT else 'alone'}"
    snapshots = str(folder / "snapshots") if name == AGENT else "off"
    with ExitStack() as stack:
        if name == AGENT:
            own = {**settings, "snapshots": snapshots}
            stack.enter_context(ha_program(["host", "agent", job], own, folder / "agent.log"))
        leaders = Leaders(job, settings, folder)
        stack.callback(leaders.end)
        leaders.start()
        with client({**settings, "snapshots": snapshots}) as asked:
            await_answer(asked, job, Source.SNAPSHOT if name == AGENT else Source.ZOOKEEPER)
        leaders.start()
        told = {**settings, "snapshots": snapshots, "job": job}
        with asking(folder, told, workers, READY_S + rounds * (PUBLISHED_S + 2 * SETTLED_S)):
            context.say(f"{workers} workers ask; {name}")
            for number in range(rounds):
                Event().wait(SETTLED_S)
                epoch = leaders.fail_over()
                context.say(f"{name}: failover {number + 1} of {rounds}, epoch {epoch}")
                Event().wait(2 * WITHIN)  # a worker that has not seen it by then never counts as in time
                leaders.start()
        return judge(json.loads((folder / "said.json").read_text(encoding="utf-8")), leaders.publications()[1:])


class Leaders:
    """Contenders of one job, each with its own address; the leader is killed, and a new contender started."""

    def __init__(self, job: str, settings: Mapping[str, str], folder: Path) -> None:
        self._job = job
        self._settings = {**settings, "snapshots": "off", "history": str(folder / "history")}
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self._programs = ExitStack()
        self._started = 0
        (folder / "history").mkdir()

    def start(self) -> None:
        self._started += 1
        arguments = ["host", "daemon", self._job, "--endpoint", f"jobmaster=host-{self._started}:6123"]
        log = self._folder / f"leader-{self._started}.log"
        self._running.append(self._programs.enter_context(ha_program(arguments, self._settings, log)))

    def publications(self) -> list[Published]:
        """Return the first publication of each epoch: the time at which HDFS held its address."""
        first: dict[int, Published] = {}
        for event in load(self._folder / "history"):
            if isinstance(event, Published) and (event.epoch not in first or event.at < first[event.epoch].at):
                first[event.epoch] = event
        return [first[epoch] for epoch in sorted(first)]

    def fail_over(self) -> int:
        """Kill the leader, wait until the next one has published its address, and return its epoch."""
        before = len(self.publications())
        self._running.pop(0).kill()

        def obstacle() -> str | None:
            return None if len(self.publications()) > before else "no contender has published an address"

        until(obstacle, PUBLISHED_S, "There is no other leader")
        return self.publications()[-1].epoch

    def end(self) -> None:
        self._programs.close()


@contextmanager
def asking(folder: Path, told: Mapping[str, str], workers: int, seconds: float) -> Iterator[None]:
    """Let Spark's workers ask. Inside the context all of them ask; at the end they report what they saw."""
    arguments = ["-m", "benchmarks.spark.asking", str(folder), str(workers), str(seconds)]
    spark = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with program(arguments, told, folder / "spark.log", **spark) as process:

        def missing() -> str | None:
            ready = len(list(folder.glob("ready-*")))
            if process.poll() is not None:
                return f"the program has ended: see {folder / 'spark.log'}"
            return None if ready == workers else f"{ready} of {workers} do"

        until(missing, READY_S, "Not all workers ask")
        yield
        (folder / "stop").touch()
        process.wait(READY_S)


def judge(said: list[dict[str, Any]], publications: list[Published]) -> Run:
    failovers = []
    for published in publications:
        key, after, strangers = str(published.epoch), [], 0
        for worker in said:
            at, address = worker["seen"].get(key, (NEVER, None))
            after.append(at - published.at)
            strangers += address not in (None, published.endpoints["jobmaster"])
        failovers.append(Failover(published.epoch, sorted(after), strangers))
    calls, failed, back = (sum(worker[what] for worker in said) for what in ("calls", "failed", "back"))
    slowest = max(worker["slowest"] for worker in said)
    errors = [error for worker in said for error in worker["errors"]][:50]
    return Run(failovers, len({worker["pid"] for worker in said}), calls, failed, back, slowest, errors)


def _shown(values: list[float]) -> list[float]:
    return sorted(values, reverse=True)[:: -(-len(values) // DOTS)]


def summarise(runs: Mapping[str, Run], workers: int) -> Result:
    rows, targets = [], []
    for name, found in runs.items():
        middles = [percentile(each.after, 0.5) for each in found.failovers]
        last = [each.after[-1] for each in found.failovers]
        late = sum(after > WITHIN for each in found.failovers for after in each.after)
        errors = found.failed + found.back + sum(each.strangers for each in found.failovers)
        figures = (found.workers, len(found.failovers), found.calls, errors, late)
        rows.append((name, *figures, median(middles), median(last), max(last), found.slowest))
        targets += [
            at_most(f"Errors and wrong answers with {name}", 0.0, float(errors), "calls"),
            at_most(f"The last of {workers} workers after the publication with {name}", WITHIN, max(last), "s"),
            at_least(f"Worker processes with {name}", float(workers), float(found.workers), "processes"),
        ]
    series = {name: [after for each in found.failovers for after in each.after] for name, found in runs.items()}
    return Result(
        COLUMNS,
        tuple(rows),
        tuple(targets),
        (
            "Seconds from the time at which HDFS held the new leader's address until a worker was first told of it.",
            "They include the 50 ms between two calls of a worker. Medians over the failovers.",
            "Errors: calls that raised, or returned an epoch below an earlier one or an address never published.",
            "Late: workers that were told after 1 s, or never.",
            f"The picture shows at most {DOTS} of all delays: every n-th, from the slowest on.",
        ),
        (dotted("after", TITLE, "s", {name: _shown(values) for name, values in series.items()}),),
        {name: asdict(found) for name, found in runs.items()},
    )
