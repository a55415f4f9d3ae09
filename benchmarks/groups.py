"""Benchmark of a NameNode group: jobs crowd one of three roots, ``ha job move`` spreads them, then a NameNode dies."""

import json
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.context import Context, environment
from benchmarks.led import Job, Programs
from benchmarks.programs import ha
from benchmarks.result import Result, at_most, table
from benchmarks.thousand_jobs.daemon import GRANTED, Daemon, end_all
from ha.config.sources import load
from ha.config.stores import Stores
from ha.placement.load import load_of
from ha.placement.place import home_of
from ha.sandbox import Sandbox
from store.clock import now

TITLE = "Jobs that crowd one NameNode of three, spread over all of them"
JOBS, QUICK_JOBS = 60, 9
ROOTS = 3
GOAL = 1.2  # load of the most loaded root after the moves, in means of all roots
SHARE = 0.2  # most jobs that are moved, of all
BATCHES_PER_SECOND = 4.0  # Of all jobs together; the largest of 60 has 0.85, the smallest one in 70 s
RETAINED = 20  # Files of a job's log
INTERVAL, QUICK_INTERVAL = 60.0, 15.0  # Seconds in which requests are counted, after which a moment is told
MINUTES = 5.0
WITHIN = 180.0


@dataclass
class Moment:
    """Load of the group, as the NameNodes count it."""

    name: str  # when that was
    rates: dict[str, float]  # requests a second of each root
    jobs: dict[str, int]  # that lie at each


@dataclass
class Findings:
    """All that was measured."""

    moments: list[Moment]  # before, and after the moves
    seconds: float = 0.0  # from the first ``ha job move`` to the end of the last
    moved: list[dict[str, object]] = field(default_factory=list)  # what ``ha job move`` said of each
    failed: list[str] = field(default_factory=list)  # of the calls, what they said
    # of each job that has moved: its longest time without a batch, in periods
    pauses: dict[str, float] = field(default_factory=dict)
    share: float = 0.0  # of the largest job in all batches
    lost: int = 0  # batches that jobs at the other roots did not complete in time after the kill
    due: int = 0  # of them
    grants: int = 0  # changes of their leaders meanwhile


def run(context: Context) -> Result:
    """Run the benchmark; it takes about ten minutes."""
    interval = QUICK_INTERVAL if context.quick else INTERVAL
    with ExitStack() as stack:
        clusters, roots = stack.enter_context(_clusters(context))
        jobs = zipf(placed(QUICK_JOBS if context.quick else JOBS, roots), BATCHES_PER_SECOND)
        zookeeper = clusters[0].environment()["HA_ZOOKEEPER"]
        settings = {"files": ",".join(roots), "zookeeper": zookeeper, "snapshots": "off"}
        variables = {**os.environ, **{f"HA_{name.upper()}": value for name, value in settings.items()}}
        daemons = [Daemon("a", [each.name for each in jobs], variables, context.folder)]
        stack.callback(end_all, daemons)
        daemons[0].granted(WITHIN)
        daemons.append(Daemon("b", [each.name for each in jobs], variables, context.folder))
        opened = Stores(load(settings))
        stack.callback(opened.close)
        stack.callback(Programs(opened, jobs, RETAINED).end)
        threading.Event().wait(interval / 2)
        found = Findings([_moment("before", jobs, roots, interval)])
        found.share = max(1 / each.period for each in jobs) / sum(1 / each.period for each in jobs)
        _spread(context, found, jobs, roots, variables)
        found.moments.append(_moment(f"after {found.seconds:.0f} s", jobs, roots, interval))
        others = [each for each in jobs if each.at() != roots[-1]]
        context.say(f"groups: the NameNode of {roots[-1]} is killed; {len(others)} jobs lie at the others")
        said = {each: each.said for each in daemons}
        clusters[-1].kill("namenode-1")
        _watch(found, others, said, interval)
    return report(found, jobs, roots)


def _spread(context: Context, found: Findings, jobs: list[Job], roots: list[str], variables: Mapping[str, str]) -> None:
    """Move a fifth of the jobs at most, each from the most loaded root to the least loaded one."""
    began = now()
    for _ in range(int(len(jobs) * SHARE)):
        at = {root: [each for each in jobs if each.at() == root] for root in roots}
        rates = {root: sum(1 / each.period for each in lying) for root, lying in at.items()}
        source, target = max(roots, key=rates.__getitem__), min(roots, key=rates.__getitem__)
        half = (rates[source] - rates[target]) / 2
        _, best = min(((abs(1 / each.period - half), each) for each in at[source]), key=lambda pair: pair[0])
        if imbalance(rates) <= GOAL or now() > began + MINUTES * 60:
            break
        context.say(f"groups: {imbalance(rates):.2f} times the mean; {best.name} moves to {target}")
        done = ha(["job", "move", best.name, "--to", target, "--json"], variables)
        found.moved += [] if done.returncode else [json.loads(done.stdout)]
        found.failed += [done.stderr] if done.returncode else []
    found.seconds = now() - began
    names = {each["job"] for each in found.moved}
    found.pauses = {each.name: each.pause(began, now()) for each in jobs if each.name in names}


def imbalance(rates: Mapping[str, float]) -> float:
    """Return the rate of the most loaded root, in means of all."""
    return max(rates.values()) * len(rates) / sum(rates.values())


def _watch(found: Findings, others: list[Job], said: Mapping[Daemon, int], interval: float) -> None:
    """Count what jobs complete, and the changes of their leaders since the daemons have said so many bytes."""
    began = now()
    threading.Event().wait(interval)
    ended = now()
    for each in others:
        found.due += math.floor((ended - began) / each.period)
        found.lost += max(0, math.floor(each.pause(began, ended)) - 1)
    names = {each.name for each in others}
    for daemon, since in said.items():
        found.grants += sum(job.decode() in names for job in GRANTED.findall(daemon.log().encode()[since:]))


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
    late = sorted((round(pause - 1, 2) for pause in found.pauses.values()), reverse=True)
    return Result(
        *table(
            {
                "moment": lambda each: each.name,
                "most loaded / mean": lambda each: round(imbalance(each.rates), 2),
                "requests/s of each": lambda each: " ".join(f"{each.rates[root]:.0f}" for root in roots),
                "jobs of each": lambda each: " ".join(f"{each.jobs[root]}" for root in roots),
            },
            found.moments,
        ),
        (
            at_most("requests of the most loaded root", GOAL, imbalance(found.moments[-1].rates), "x the mean"),
            at_most("time until then", MINUTES * 60, found.seconds, "s"),
            at_most("jobs that were moved", 100 * SHARE, 100 * len(found.moved) / len(jobs), "% of all"),
            at_most("pause of a job that was moved, at most", 1, max(late, default=math.nan), "batches"),
            at_most("batches lost by jobs at other roots than the killed NameNode's", 0, found.lost, "batches"),
        ),
        (
            f"{len(jobs)} jobs with batches by Zipf's law; the largest has {found.share:.0%} of all.",
            f"Batches by which the jobs that were moved were late: {', '.join(map(str, late)) or 'none moved'}.",
            f"After the kill {found.due} batches were due at other roots; {found.grants} jobs there changed leaders.",
            *(f"ha job move failed: {each.strip()}" for each in found.failed),
        ),
        (),
        asdict(found) | {"jobs": [asdict(each) for each in jobs]},
    )
