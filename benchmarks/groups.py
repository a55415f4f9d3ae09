"""Benchmark of a NameNode group: jobs that crowd one of three roots are spread by ``ha balance``, then a NameNode dies.

Two daemons contend for all jobs. A thread of each job does what its program would: whenever a batch is due, it writes a
file and completes a checkpoint under whoever leads the job. How often it is due follows Zipf's law.
"""

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import count, pairwise
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.context import Context, environment
from benchmarks.result import Result, Target
from benchmarks.thousand_jobs.daemon import GRANTED, Daemon
from ha.config.sources import load
from ha.config.stores import Stores
from ha.groups.balancing.plan import GOAL, SHARE, imbalance
from ha.groups.placement.load import load_of
from ha.groups.placement.place import home_of
from ha.sandbox import Sandbox
from leader.errors import LeaderError
from leader.job.admin import JobAdmin
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout.lease import Mode
from store.clock import now
from store.errors import StoreError

NAME = "groups"
TITLE = "Jobs that crowd one NameNode of three, spread over all of them"
COLUMNS = ("moment", "most loaded / mean", "requests/s of each", "jobs of each")
JOBS, QUICK_JOBS = 60, 9
ROOTS = 3
BATCHES_PER_SECOND = 4.0
"""Of all jobs together; the largest of 60 has 0.85, the smallest one in 70 s."""

RETAINED = 20
"""Files of a job's log."""

INTERVAL, QUICK_INTERVAL = 60.0, 15.0
"""Seconds in which requests are counted, by the benchmark and by ``ha balance``."""

MINUTES = 5.0
POLL = 0.1
"""Seconds between two looks of a program whether it is led again."""

WITHIN = 180.0
MOVER = "move-"
"""Begins the name of the contender that is ``ha move``: it leads the job so that nobody writes."""


@dataclass
class Job:
    """One job, and what became of it.

    Attributes:
        name: of the job.
        period: seconds from batch to batch.
        done: boot-clock time of each batch, and the root at which it was completed.
    """

    name: str
    period: float
    done: list[tuple[float, str]] = field(default_factory=list)

    def pause(self, since: float, until: float) -> float:
        """Longest time without a batch that ended or lasted in this span, in periods; 1 is as it should be."""
        times = [at for at, _ in self.done if at <= until]
        gaps = [later - at for at, later in pairwise([*times, until]) if later > since]
        return max(gaps, default=until - since) / self.period

    def at(self) -> str:
        """Root of its newest batch."""
        return self.done[-1][1] if self.done else ""


class Programs:
    """The programs of all jobs."""

    def __init__(self, opened: Stores, jobs: Sequence[Job]) -> None:
        """Start one thread each."""
        self._opened = opened
        self._admin = JobAdmin(opened.files, opened.zookeeper, opened.timing.call_timeout)
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(each,), daemon=True) for each in jobs]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop them."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, job: Job) -> None:
        due, batches = now(), count()
        led: FencedDirectory | None = None
        while not self._ended.wait(max(0.0, due - now())):
            while not self._ended.is_set():
                try:
                    led = led or self._led(job.name)
                    if led is not None:
                        self._complete(led, next(batches))
                        root = self._opened.files.at(job.name).removesuffix(f"/{job.name}")
                        job.done.append((now(), root))
                        due = max(due + job.period, now())
                        break
                except (LeaderError, StoreError):
                    led = None
                self._ended.wait(POLL)

    def _led(self, job: str) -> FencedDirectory | None:
        leader, lease = self._admin.lease(job)
        free = lease.mode is Mode.RELEASED or lease.owner != leader.session_id
        return None if free or lease.contender.startswith(MOVER) else self._admin.directory(job, leader)

    @staticmethod
    def _complete(led: FencedDirectory, batch: int) -> None:
        led.put(b"v1\n{}", f"blobs/commit-{batch}=1")
        if batch >= RETAINED:
            with suppress(StoreError):
                led.delete(f"blobs/commit-{batch - RETAINED}=1")
        Checkpoints(led).completed("daily", batch)


@dataclass
class Moment:
    """Load of the group, as the NameNodes count it.

    Attributes:
        name: when that was.
        rates: requests a second of each root.
        jobs: that lie at each.
    """

    name: str
    rates: dict[str, float]
    jobs: dict[str, int]


@dataclass
class Findings:
    """All that was measured.

    Attributes:
        moments: before, and after each call of ``ha balance``.
        seconds: from the first call of ``ha balance`` to the end of the last one.
        moved: what ``ha balance`` said of each move.
        failed: of its calls, what they said.
        pauses: of each job that has moved: its longest time without a batch, in periods.
        share: of the largest job in all batches.
        lost: batches that jobs at the other roots did not complete in time after the kill.
        due: of them.
        grants: changes of their leaders meanwhile.
    """

    moments: list[Moment]
    seconds: float = 0.0
    moved: list[dict[str, object]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    pauses: dict[str, float] = field(default_factory=dict)
    share: float = 0.0
    lost: int = 0
    due: int = 0
    grants: int = 0


def run(context: Context) -> Result:
    """Run the benchmark; it takes about ten minutes.

    Raises:
        SandboxError: the servers did not start.
        NotGranted: the daemons did not lead all jobs in time.
    """
    interval = QUICK_INTERVAL if context.quick else INTERVAL
    with ExitStack() as stack:
        clusters, roots = stack.enter_context(_clusters(context))
        jobs = zipf(placed(QUICK_JOBS if context.quick else JOBS, roots), BATCHES_PER_SECOND)
        settings = {
            "files": ",".join(roots),
            "zookeeper": clusters[0].environment()["HA_ZOOKEEPER"],
            "snapshots": "off",
        }
        variables = {**os.environ, **{f"HA_{name.upper()}": value for name, value in settings.items()}}
        daemons = [Daemon("a", [each.name for each in jobs], variables, context.folder)]
        stack.callback(_end, daemons)
        daemons[0].granted(WITHIN)
        daemons.append(Daemon("b", [each.name for each in jobs], variables, context.folder))
        opened = Stores(load(settings))
        stack.callback(opened.close)
        stack.callback(Programs(opened, jobs).end)
        threading.Event().wait(interval / 2)
        found = Findings([_moment("before", jobs, roots, interval)])
        found.share = max(1 / each.period for each in jobs) / sum(1 / each.period for each in jobs)
        _balance(context, found, jobs, roots, variables, interval)
        _kill(context, found, jobs, roots, clusters, daemons, interval)
    return report(found, jobs, roots)


def _balance(
    context: Context, found: Findings, jobs: list[Job], roots: list[str], variables: Mapping[str, str], interval: float
) -> None:
    """Call ``ha balance`` until it is even, or a fifth of the jobs has moved, or the time is over."""
    began = now()
    while imbalance(found.moments[-1].rates) > GOAL and now() < began + MINUTES * 60:
        context.say(f"groups: {imbalance(found.moments[-1].rates):.2f} times the mean; ha balance")
        command = [sys.executable, "-m", "ha.cli", "balance", "--json", "--interval", f"{interval} s"]
        done = subprocess.run(command, check=False, env=dict(variables), capture_output=True, text=True)
        moved = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found.moved += moved
        found.failed += [done.stderr] if done.returncode else []
        found.seconds = now() - began
        found.moments.append(_moment(f"after {found.seconds:.0f} s", jobs, roots, interval))
        if not moved or len(found.moved) >= int(len(jobs) * SHARE):
            break
    names = {each["job"] for each in found.moved}
    found.pauses = {each.name: each.pause(began, now()) for each in jobs if each.name in names}


def _kill(
    context: Context,
    found: Findings,
    jobs: list[Job],
    roots: list[str],
    clusters: list[Sandbox],
    daemons: list[Daemon],
    interval: float,
) -> None:
    """Kill the last NameNode, and count what the jobs at the others complete."""
    others = [each for each in jobs if each.at() != roots[-1]]
    said = [each.said for each in daemons]
    context.say(f"groups: the NameNode of {roots[-1]} is killed; {len(others)} jobs lie at the others")
    clusters[-1].kill("namenode-1")
    began = now()
    threading.Event().wait(interval)
    ended = now()
    for each in others:
        found.due += math.floor((ended - began) / each.period)
        found.lost += max(0, math.floor(each.pause(began, ended)) - 1)
    names = {each.name for each in others}
    for daemon, since in zip(daemons, said, strict=True):
        found.grants += sum(job.decode() in names for job in GRANTED.findall(daemon.log().encode()[since:]))


def _end(daemons: list[Daemon]) -> None:
    for each in daemons:
        each.end()


def _moment(name: str, jobs: Sequence[Job], roots: Sequence[str], seconds: float) -> Moment:
    before, began = {root: load_of(root).requests for root in roots}, now()
    threading.Event().wait(seconds)
    rates = {root: (load_of(root).requests - before[root]) / (now() - began) for root in roots}
    at = [each.at() for each in jobs]
    return Moment(name, rates, {root: at.count(root) for root in roots})


def placed(jobs: int, roots: Sequence[str]) -> list[str]:
    """Return names of jobs whose homes are the roots: the first third at the first root, and so on."""
    numbers = count()
    found = list[str]()
    for number in range(jobs):
        wanted = roots[number * len(roots) // jobs]
        found.append(next(name for name in (f"job-{each:04d}" for each in numbers) if home_of(roots, name) == wanted))
    return found


def zipf(names: Sequence[str], rate: float) -> list[Job]:
    """Return jobs with so many batches a second in total: the second has half as many as the first, and so on."""
    whole = sum(1 / rank for rank in range(1, len(names) + 1))
    return [Job(name, rank * whole / rate) for rank, name in enumerate(names, 1)]


@contextmanager
def _clusters(context: Context) -> Iterator[tuple[list[Sandbox], list[str]]]:
    """Start three HDFS, each with a NameNode; this process and its children know all of them."""
    with ExitStack() as stack:
        clusters = [Sandbox(context.folder / f"cluster-{number}") for number in range(ROOTS)]
        lines = list[str]()
        for number, each in enumerate(clusters, 1):
            each.down(wipe=True)  # left over from an interrupted run
            stack.callback(each.down, wipe=True)
            each.up(progress=context.say)
            given = each.environment()
            for use, uri in (("rpc", given["HA_FILES"]), ("http", given["HA_SANDBOX_WEBHDFS"])):
                name = f"dfs.namenode.{use}-address.ns{number}"
                lines.append(f"<property><name>{name}</name><value>{urlsplit(uri).netloc}</value></property>")
        conf = Path(context.folder, "conf")
        conf.mkdir(exist_ok=True)
        (conf / "hdfs-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
        user = clusters[0].environment()["HADOOP_USER_NAME"]
        stack.enter_context(environment({"HADOOP_CONF_DIR": str(conf), "HADOOP_USER_NAME": user}))
        yield clusters, [each.environment()["HA_FILES"] for each in clusters]


# --- summary


def report(found: Findings, jobs: Sequence[Job], roots: Sequence[str]) -> Result:
    """Summarise the measurements."""
    rows = [
        (
            each.name,
            round(imbalance(each.rates), 2),
            " ".join(f"{each.rates[root]:.0f}" for root in roots),
            " ".join(f"{each.jobs[root]}" for root in roots),
        )
        for each in found.moments
    ]
    late = sorted((round(pause - 1, 2) for pause in found.pauses.values()), reverse=True)
    return Result(
        NAME,
        TITLE,
        COLUMNS,
        tuple(rows),
        (
            Target("requests of the most loaded root", GOAL, imbalance(found.moments[-1].rates), "x the mean", True),
            Target("time until then", MINUTES * 60, found.seconds, "s", True),
            Target("jobs that were moved", 100 * SHARE, 100 * len(found.moved) / len(jobs), "% of all", True),
            Target("pause of a job that was moved, at most", 1, max(late, default=math.nan), "batches", True),
            Target("batches lost by jobs at other roots than the killed NameNode's", 0, found.lost, "batches", True),
        ),
        (
            f"{len(jobs)} jobs with batches by Zipf's law; the largest has {found.share:.0%} of all.",
            f"Batches by which the jobs that were moved were late: {', '.join(map(str, late)) or 'none moved'}.",
            f"After the kill {found.due} batches were due at other roots; {found.grants} jobs there changed leaders.",
            *(f"ha balance failed: {each.strip()}" for each in found.failed),
        ),
        (),
        asdict(found) | {"jobs": [asdict(each) for each in jobs]},
    )
