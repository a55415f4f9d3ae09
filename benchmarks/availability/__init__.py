"""Benchmark of availability: share of lookups that are answered while one store is down, here and with alternatives."""

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict

from benchmarks.availability.asking import Asked
from benchmarks.availability.contestants import CONTESTANTS, JOB, OURS
from benchmarks.availability.outages import AFTER, LATE, SOON, Environment, Outage, Trouble, counted, judge, suffer
from benchmarks.context import Context, servers
from benchmarks.drawing import shares
from benchmarks.figures import text
from benchmarks.programs import await_answer, client, ha_program
from benchmarks.result import Picture, Result, at_least, table
from ha.config.sources import load
from ha.config.stores import Stores
from ha.sandbox import Sandbox
from leader.job.admin import JobAdmin
from leader.lookup.answers import Source

TITLE = "Lookups answered during an outage of one store"

ZOOKEEPER_S = 60.0
HDFS_S = 20.0
"""Seconds. Without HDFS a leader cannot renew its lease: it may stop after 40 s (``long_ttl``, less up to 20 s since
its last renewal), and then no reader can find a leader. A killed NameNode takes some seconds more to start."""

QUICK_ZOOKEEPER_S = 15.0
QUICK_HDFS_S = 10.0

Answers = dict[str, list[Asked]]


def run(context: Context) -> Result:
    with servers(context) as sandbox, _environment(sandbox, context) as environment:
        suffered: list[tuple[Trouble, Answers]] = []
        for number in range(context.repeats(usual=1, quick=1)):
            for outage in _outages(context.quick):
                context.say(f"Round {number + 1}: {outage.name}")
                suffered.append(suffer(environment, outage))
        return _result(suffered)


def _outages(quick: bool) -> tuple[Outage, ...]:
    zookeeper, hdfs = (QUICK_ZOOKEEPER_S, QUICK_HDFS_S) if quick else (ZOOKEEPER_S, HDFS_S)
    every = tuple(CONTESTANTS)
    return (
        Outage("ZooKeeper killed", "zookeeper-1", False, zookeeper, True, every),
        Outage("ZooKeeper frozen", "zookeeper-1", True, zookeeper, True, every),
        Outage("HDFS killed", "namenode-1", False, hdfs, False, OURS),
        Outage("HDFS frozen", "namenode-1", True, hdfs, False, OURS),
    )


@contextmanager
def _environment(sandbox: Sandbox, context: Context) -> Iterator[Environment]:
    """Start two daemons (one leads, one is this host's agent) and an operator's access to the job."""
    stores = sandbox.environment()
    snapshots = str((context.folder / "snapshots").absolute())
    settings = {"files": stores["HA_FILES"], "zookeeper": stores["HA_ZOOKEEPER"], "snapshots": snapshots}
    with ExitStack() as stack:
        for name in ("a", "b"):
            daemon = ["host", "daemon", JOB, "--contender", name, "--endpoint", f"jobmaster={name}:6123"]
            stack.enter_context(ha_program(daemon, settings, context.folder / f"{name}.log"))
        with client(settings) as asked:
            await_answer(asked, JOB, Source.SNAPSHOT)
        opened = Stores(load({**settings, "zookeeper": "", "snapshots": "off"}))
        stack.callback(opened.close)
        operations = JobAdmin(opened.files, None, opened.timing.call_timeout)
        variables = {f"HA_{name.upper()}": value for name, value in settings.items()}
        yield Environment(sandbox, operations, variables, context)


def _result(suffered: list[tuple[Trouble, Answers]]) -> Result:
    judged = [(trouble, name, judge(trouble, asked)) for trouble, every in suffered for name, asked in every.items()]
    worst = 100 * min(verdict.late for _, name, verdict in judged if name in OURS)
    return Result(
        *table(
            {
                "outage": lambda row: f"{row[0].name}, {text(row[0].ended - row[0].began)} s",
                "who asks": lambda row: row[1],
                "lookups": lambda row: row[2].asked,
                f"within {SOON * 1000:g} ms (%)": lambda row: 100 * row[2].soon,
                f"within {LATE:g} s (%)": lambda row: 100 * row[2].late,
                "slowest (s)": lambda row: row[2].longest,
                "named the old leader for (s)": lambda row: row[2].misled if math.isfinite(row[0].moved) else "-",
            },
            judged,
        ),
        (at_least(f"Lookups here that are answered within {LATE:g} s, in the worst outage", 100, worst, "%"),),
        _notes(suffered),
        tuple(_pictures(suffered)),
        {
            "outages": [{**asdict(trouble), "asked": every} for trouble, every in suffered],
            "verdicts": [{"outage": trouble.name, "who": name, **asdict(verdict)} for trouble, name, verdict in judged],
        },
    )


def _notes(suffered: list[tuple[Trouble, Answers]]) -> tuple[str, ...]:
    moves = [
        f"{trouble.name}: epoch {trouble.epoch}, {text(trouble.moved - trouble.began)} s after its beginning"
        for trouble, _ in suffered
        if math.isfinite(trouble.moved)
    ]
    return (
        f"Lookups count if they are due between the start of the outage and {AFTER:g} s after the store serves again.",
        "Answered means that a leader was named. The last column shows whether it was the right one.",
        "It gives the time from the takeover in HDFS to the last lookup that still named the old leader.",
        f"Another leader took over during the outage ({'; '.join(moves)})." if moves else "No leader changed.",
        "A Curator cache always answers, from its own memory, and cannot know of a change during an outage.",
    )


def _pictures(suffered: list[tuple[Trouble, Answers]]) -> Iterator[Picture]:
    for trouble, every in suffered[: len(_outages(quick=True))]:
        what = f"{trouble.name}: share of the lookups that took at most this long"
        drawn = shares(what, "s", _seconds(trouble, every), log=True)
        yield Picture(trouble.name.lower().replace(" ", "-"), what, drawn)


def _seconds(trouble: Trouble, every: Mapping[str, list[Asked]]) -> dict[str, list[float]]:
    return {
        name: [math.inf if seconds is None else seconds for _, seconds, _ in counted(trouble, asked)]
        for name, asked in every.items()
    }
