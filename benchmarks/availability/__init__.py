"""How many lookups are answered while one store is away: here, and by what people use today.

All readers ask for the same record of the same leader at the same times during the same outage, each in a process of
its own. Halfway through an outage of ZooKeeper the leader resigns and a standby takes over, so that it can be told
whether an answer is true: a cache that answers from memory always answers.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict

from benchmarks.availability.asking import Asked
from benchmarks.availability.contestants import CONTESTANTS, JOB, OURS
from benchmarks.availability.judging import LATE, SOON, Trouble, Verdict, counted, judge
from benchmarks.availability.outages import AFTER, EVERY, Ground, Outage, suffer
from benchmarks.context import Context, servers
from benchmarks.drawing import bars, shares
from benchmarks.figures import text
from benchmarks.programs import await_answer, client, ha_program
from benchmarks.result import Picture, Result, Target
from ha.sandbox import Sandbox
from ha.settings import load
from ha.stores import Stores
from leader.operations import Operations
from leader.retrieval import Source

NAME = "availability"
TITLE = "Lookups answered during an outage of one store"

ZOOKEEPER_S = 60.0
HDFS_S = 20.0
"""Seconds. Without HDFS a leader cannot renew: it may stop after 40 s (``long_ttl``, less the 20 s for which its last
renewal may be old), and then there is nobody to be found. A killed NameNode takes some seconds more to start."""

QUICK_ZOOKEEPER_S = 15.0
QUICK_HDFS_S = 10.0

Answers = dict[str, list[Asked]]


def run(context: Context) -> Result:
    """Measure.

    Raises:
        SandboxError: the servers, or the leaders, did not come up.
        RuntimeError: a contestant failed.
    """
    with servers(context) as sandbox, _ground(sandbox, context) as ground:
        suffered: list[tuple[Trouble, Answers]] = []
        for number in range(context.repeats(usual=1, quick=1)):
            for outage in _outages(context.quick):
                context.say(f"Round {number + 1}: {outage.name}")
                suffered.append(suffer(ground, outage))
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
def _ground(sandbox: Sandbox, context: Context) -> Iterator[Ground]:
    """Two daemons, of which one leads and one is this host's agent, and an operator."""
    stores = sandbox.environment()
    settings = {
        "files": stores["HA_FILES"],
        "zookeeper": stores["HA_ZOOKEEPER"],
        "snapshots": str((context.folder / "snapshots").absolute()),
    }
    with ExitStack() as stack:
        for name in ("a", "b"):
            daemon = ["daemon", JOB, "--contender", name, "--endpoint", f"jobmaster={name}:6123"]
            stack.enter_context(ha_program(daemon, settings, context.folder / f"{name}.log"))
        with client(settings) as asked:
            await_answer(asked, JOB, Source.SNAPSHOT)
        opened = Stores(load({**settings, "zookeeper": "", "snapshots": "off"}))
        stack.callback(opened.close)
        operations = Operations(opened.files, None, opened.timing.call_timeout)
        yield Ground(sandbox, operations, {f"HA_{name.upper()}": value for name, value in settings.items()}, context)


def _result(suffered: list[tuple[Trouble, Answers]]) -> Result:
    judged = [(trouble, name, judge(trouble, asked)) for trouble, every in suffered for name, asked in every.items()]
    ours = [verdict.late for _, name, verdict in judged if name in OURS]
    return Result(
        NAME,
        TITLE,
        (
            "outage",
            "who asks",
            "lookups",
            f"within {SOON * 1000:g} ms (%)",
            f"within {LATE:g} s (%)",
            "slowest (s)",
            "named the old leader for (s)",
        ),
        tuple(_row(*each) for each in judged),
        (
            Target(
                f"Lookups here that are answered within {LATE:g} s, in the worst outage",
                100.0,
                100 * min(ours),
                "%",
                False,
            ),
        ),
        _notes(suffered),
        _pictures(suffered, judged),
        {
            "outages": [{**asdict(trouble), "asked": every} for trouble, every in suffered],
            "verdicts": [{"outage": trouble.name, "who": name, **asdict(verdict)} for trouble, name, verdict in judged],
        },
    )


def _row(trouble: Trouble, name: str, verdict: Verdict) -> tuple[str | float | int, ...]:
    misled = verdict.misled if math.isfinite(trouble.moved) else "-"
    return (
        f"{trouble.name}, {text(trouble.ended - trouble.began)} s",
        name,
        verdict.asked,
        100 * verdict.soon,
        100 * verdict.late,
        verdict.longest,
        misled,
    )


def _notes(suffered: list[tuple[Trouble, Answers]]) -> tuple[str, ...]:
    moves = [
        f"{trouble.name}: epoch {trouble.epoch}, {text(trouble.moved - trouble.began)} s after its beginning"
        for trouble, _ in suffered
        if math.isfinite(trouble.moved)
    ]
    return (
        f"A lookup is due every {text(EVERY * 1000)} ms, whatever became of earlier ones; its time counts from then.",
        f"Those count that are due from the beginning of the outage until {AFTER:g} s after the store serves again.",
        "Answered means: a leader was named. Whether it was the right one is in the last column.",
        "There: how long after another leader took over in HDFS a lookup still began that was told of the old one.",
        f"Another leader took over in the outage ({'; '.join(moves)})." if moves else "No leader changed.",
        "A Curator cache always answers, from the memory of its process, and cannot know of a change in an outage.",
        "It is asked through a socket here, which costs it about a millisecond.",
        "Kazoo's get has no time-out. Its client here tries to connect once a second, and not more and more seldom.",
    )


def _pictures(
    suffered: list[tuple[Trouble, Answers]], judged: list[tuple[Trouble, str, Verdict]]
) -> tuple[Picture, ...]:
    late = {f"{name} ({trouble.name})": 100 * verdict.late for trouble, name, verdict in judged}
    title = f"Lookups answered within {LATE:g} s"
    pictures = [Picture("within", title, bars(title, "%", late))]
    for trouble, every in suffered[: len(_outages(quick=True))]:
        what = f"{trouble.name}: share of the lookups that took no longer"
        pictures.append(
            Picture(trouble.name.lower().replace(" ", "-"), what, shares(what, "s", _seconds(trouble, every), log=True))
        )
    return tuple(pictures)


def _seconds(trouble: Trouble, every: Mapping[str, list[Asked]]) -> dict[str, list[float]]:
    return {
        name: [math.inf if seconds is None else seconds for _, seconds, _ in counted(trouble, asked)]
        for name, asked in every.items()
    }
